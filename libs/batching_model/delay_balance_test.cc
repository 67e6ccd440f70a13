#include "libs/batching_model/delay_balance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "libs/batching_model/affine_fixture.h"

namespace tokenrouter {
namespace {

TEST(DelayBalanceTest, MatchesTheClosedFormVectors) {
  const auto gpu_small = AffineStepTimes(6, 0.02, 64), gpu_large = AffineStepTimes(24, 0.1, 64);
  const auto cpu_small = AffineStepTimes(25, 4, 64), cpu_large = AffineStepTimes(80, 12, 64);
  EXPECT_NEAR(DelayBalanceThreshold(gpu_small, 1, 1.0, 1), 2.99, 0.005);
  EXPECT_NEAR(DelayBalanceThreshold(gpu_small, 2, 4.0, 1), 3.97, 0.01);
  EXPECT_NEAR(DelayBalanceThreshold(gpu_large, 1, 0.4, 1), 6.79, 0.005);
  EXPECT_NEAR(DelayBalanceThreshold(gpu_large, 4, 1.6, 1), 6.71, 0.005);
  EXPECT_NEAR(DelayBalanceThreshold(cpu_small, 1, 1.0, 1), 10.5, 0.005);
  EXPECT_NEAR(DelayBalanceThreshold(cpu_large, 1, 0.1, 1), -3.64, 0.005);
}

TEST(DelayBalanceTest, MeanResidualMatchesSampling) {
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

}  // namespace
}  // namespace tokenrouter
