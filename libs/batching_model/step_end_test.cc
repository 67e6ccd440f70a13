#include "libs/batching_model/step_end.h"

#include <gtest/gtest.h>

#include <random>

namespace tokenrouter {
namespace {

TEST(StepEndTest, MeanResidualMatchesSampling) {
  std::mt19937_64 generator(3);
  std::normal_distribution<double> step(20.0, 2.0);
  for (const double elapsed : {0.0, 15.0, 20.0, 23.0}) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < 400000; ++i) {
      const double time = step(generator);
      if (time > elapsed) sum += time - elapsed, ++count;
    }
    EXPECT_NEAR(MeanResidual(20.0, elapsed, 0.1), sum / count, 0.03) << elapsed;
  }
  EXPECT_EQ(MeanResidual(20.0, 25.0, 0.0), 0.0);
  EXPECT_GT(MeanResidual(20.0, 60.0, 0.1), 0.0);
}

TEST(StepEndTest, AStepIsOverdueAfterThreeSpreadsOfTwoPercentAtLeast) {
  EXPECT_NEAR(LongestRun(20, .1), 26, 1e-9);
  EXPECT_NEAR(LongestRun(20, 0), 21.2, 1e-9);
}

}  // namespace
}  // namespace tokenrouter
