#include "libs/batching_model/step_time_estimator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tokenrouter {
namespace {

double True(int rows, int64_t ids) { return 15 + .5 * rows + .128 * static_cast<double>(ids); }

class Steps {
 public:
  // A step of 1..64 rows with 1..20 ids each and the given relative spread.
  void Feed(StepTimeEstimator* estimator, int steps, double spread, double slower = 1) {
    std::uniform_int_distribution<int> rows(1, 64), per_row(1, 20);
    std::normal_distribution<double> noise(1.0, spread);
    for (int i = 0; i < steps; ++i) {
      const int r = rows(generator_);
      const int64_t ids = static_cast<int64_t>(r) * per_row(generator_);
      estimator->Observe(r, ids, slower * True(r, ids) * noise(generator_));
    }
  }

 private:
  std::mt19937_64 generator_{7};
};

TEST(StepTimeEstimatorTest, KnowsNothingBeforeTheFirstStep) {
  const StepTimeEstimator estimator;
  EXPECT_EQ(estimator.Predict(4, 40), 0);
  EXPECT_EQ(estimator.RelativeSpread(), 0);
}

TEST(StepTimeEstimatorTest, IsFlatUntilASecondShapeIsSeen) {
  StepTimeEstimator estimator;
  for (int i = 0; i < 50; ++i) estimator.Observe(4, 40, 20 + i % 2);
  EXPECT_NEAR(estimator.Predict(4, 40), 20.5, 0.2);
  EXPECT_NEAR(estimator.Predict(64, 640), 20.5, 1.0);
  EXPECT_NEAR(estimator.Predict(1, 1), 20.5, 0.5);
}

TEST(StepTimeEstimatorTest, FindsTheThreeTerms) {
  StepTimeEstimator estimator;
  Steps().Feed(&estimator, 400, 0);
  EXPECT_NEAR(estimator.coefficients().base_ms, 15, 0.05);
  EXPECT_NEAR(estimator.coefficients().row_ms, .5, 0.005);
  EXPECT_NEAR(estimator.coefficients().id_ms, .128, 0.001);
  EXPECT_LT(estimator.Uncertainty(10, 100), 0.01);
}

// Two cores: up to eight ids are bound by memory, beyond by compute.
TEST(StepTimeEstimatorTest, FollowsATimeThatBendsWithTheIds) {
  const auto bent = [](int64_t ids) { return 46 + 3.4 * std::max<double>(0, ids - 8.0); };
  StepTimeEstimator estimator;
  std::mt19937_64 generator(3);
  std::normal_distribution<double> noise(1.0, .05);
  std::uniform_int_distribution<int> rows(1, 4), per_row(1, 12);
  for (int i = 0; i < 400; ++i) {
    const int r = rows(generator);
    const int64_t ids = static_cast<int64_t>(r) * per_row(generator);
    estimator.Observe(r, ids, bent(ids) * noise(generator));
  }
  for (const int64_t ids : {1, 8, 12, 20, 40}) {
    EXPECT_NEAR(estimator.Predict(1, ids) / bent(ids), 1, .06) << ids;
  }
  EXPECT_NEAR(estimator.coefficients().LateIdMs(), 3.4, .2);
}

TEST(StepTimeEstimatorTest, MeasuresTheSpreadOfSingleSteps) {
  StepTimeEstimator estimator;
  Steps().Feed(&estimator, 2000, 0.05);
  EXPECT_NEAR(estimator.RelativeSpread(), 0.05, 0.015);
  EXPECT_NEAR(estimator.Predict(32, 320) / True(32, 320), 1, 0.03);
}

TEST(StepTimeEstimatorTest, RowsThatAlwaysBringOneIdArePredictedAlongThatLine) {
  StepTimeEstimator estimator;
  for (int i = 0; i < 300; ++i) {
    const int rows = 1 + i % 16;
    estimator.Observe(rows, rows, 3 + .1 * rows);
  }
  EXPECT_NEAR(estimator.Predict(12, 12), 4.2, 0.02);
  EXPECT_NEAR(estimator.Predict(40, 40), 7.0, 0.05);
}

TEST(StepTimeEstimatorTest, NeverFallsAndIsNeverNegative) {
  StepTimeEstimator estimator;
  for (int i = 0; i < 200; ++i) {
    const int rows = 1 + i % 8;
    estimator.Observe(rows, 10 * rows, 30 - 2 * rows);  // A device that speeds up with load.
    EXPECT_GE(estimator.coefficients().base_ms, 0);
    EXPECT_GE(estimator.coefficients().row_ms, 0);
    EXPECT_GE(estimator.coefficients().id_ms, 0);
    for (const double bend : estimator.coefficients().bend_ms) EXPECT_GE(bend, 0);
  }
  EXPECT_NEAR(estimator.Predict(4, 40), 21, 3);
}

TEST(StepTimeEstimatorTest, FollowsADeviceThatBecomesSlower) {
  StepTimeEstimator estimator;
  Steps steps;
  steps.Feed(&estimator, 500, 0.02);
  steps.Feed(&estimator, 3, 0.02, 2.0);
  EXPECT_GT(estimator.Drift(), 0.1);
  steps.Feed(&estimator, 600, 0.02, 2.0);
  EXPECT_NEAR(estimator.Predict(32, 320) / (2 * True(32, 320)), 1, 0.03);
}

TEST(StepTimeEstimatorTest, ALongTimeAtOneShapeDoesNotEraseTheOthers) {
  StepTimeEstimator estimator;
  Steps().Feed(&estimator, 500, 0);
  for (int i = 0; i < 20000; ++i) estimator.Observe(1, 10, True(1, 10));
  EXPECT_NEAR(estimator.Predict(64, 640) / True(64, 640), 1, 0.02);
}

// Where all steps are long, nothing separates the base from the slopes below the bends.
TEST(StepTimeEstimatorTest, StaysSoundOverALongTimeOfLongSteps) {
  StepTimeEstimator estimator;
  std::mt19937_64 generator(5);
  std::uniform_int_distribution<int64_t> ids(1000, 60000);
  std::normal_distribution<double> noise(1.0, .05);
  for (int i = 0; i < 300000; ++i) {
    const int64_t n = ids(generator);
    estimator.Observe(64, n, True(64, n) * noise(generator));
  }
  for (const int64_t n : {1000, 10000, 60000}) {
    EXPECT_NEAR(estimator.Predict(64, n) / True(64, n), 1, .04) << n;
  }
  EXPECT_NEAR(estimator.RelativeSpread(), .05, .01);
}

TEST(StepTimeEstimatorTest, OneStallMovesThePredictionLittle) {
  StepTimeEstimator estimator;
  Steps().Feed(&estimator, 500, 0.02);
  estimator.Observe(16, 160, 3000);
  EXPECT_LT(estimator.Predict(16, 160) / True(16, 160), 1.10);
  estimator.Observe(16, 160, -1);  // Ignored.
  EXPECT_EQ(estimator.observations(), 501);
}

}  // namespace
}  // namespace tokenrouter
