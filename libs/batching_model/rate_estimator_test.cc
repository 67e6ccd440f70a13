#include "libs/batching_model/rate_estimator.h"

#include <gtest/gtest.h>

#include <random>

namespace tokenrouter {
namespace {

TEST(RateEstimatorTest, StartsAtThePriorWithTheWidestBounds) {
  const RateEstimator rate(0.3);
  EXPECT_EQ(rate.mean(), 0.3);
  EXPECT_EQ(rate.Lower(), 0);
  EXPECT_EQ(rate.Upper(), 1);
}

TEST(RateEstimatorTest, BoundsHoldTheTruthAboutNineteenTimesInTwenty) {
  std::mt19937_64 generator(5);
  int inside = 0;
  constexpr int kRuns = 400;
  for (int run = 0; run < kRuns; ++run) {
    RateEstimator rate(0.5, 1e6);
    std::binomial_distribution<int> step(16, 0.1);
    for (int i = 0; i < 20; ++i) rate.Observe(16, step(generator));
    inside += rate.Lower() <= 0.1 && 0.1 <= rate.Upper();
  }
  EXPECT_GT(inside, kRuns * 0.92);
  EXPECT_LT(inside, kRuns * 0.985);
}

TEST(RateEstimatorTest, WithoutAYesTheUpperBoundStaysAboveZero) {
  RateEstimator rate(0.1);
  rate.Observe(20, 0);
  EXPECT_EQ(rate.Lower(), 0);
  EXPECT_GT(rate.Upper(), 0.1);
  EXPECT_LT(rate.mean(), 0.01);
}

TEST(RateEstimatorTest, OldTrialsFadeAndTheirNumberIsBounded) {
  RateEstimator rate(0.1, 500);
  for (int i = 0; i < 200; ++i) rate.Observe(10, 1);
  EXPECT_NEAR(rate.mean(), 0.1, 1e-3);
  for (int i = 0; i < 300; ++i) rate.Observe(10, 4);
  EXPECT_NEAR(rate.mean(), 0.4, 2e-3);
  EXPECT_LE(rate.effective_trials(), 500);
}

TEST(RateEstimatorTest, OneHugeBatchCountsNoMoreThanTheMemory) {
  RateEstimator rate(0.1, 100);
  rate.Observe(1 << 20, 1 << 19);
  EXPECT_NEAR(rate.mean(), 0.5, 0.01);
  EXPECT_LE(rate.effective_trials(), 100.001);
}

TEST(RetuneGateTest, MovesByAQuarterOrByTheInterval) {
  RateEstimator rate(0.2, 1e6);
  RetuneGate gate;
  EXPECT_TRUE(gate.Moved(rate));  // Nothing was planned yet.
  rate.Observe(100000, 20000);
  gate.Planned(rate);
  EXPECT_FALSE(gate.Moved(rate));
  rate.Observe(50000, 12000);  // 0.213
  EXPECT_FALSE(gate.Moved(rate));
  rate.Observe(100000, 40000);  // 0.288
  EXPECT_TRUE(gate.Moved(rate));
}

TEST(RetuneGateTest, ThinDataDoesNotMoveIt) {
  RateEstimator rate(0.2);
  rate.Observe(10, 2);
  RetuneGate gate;
  gate.Planned(rate);
  rate.Observe(4, 2);  // 0.28, but within the interval.
  EXPECT_FALSE(gate.Moved(rate));
}

}  // namespace
}  // namespace tokenrouter
