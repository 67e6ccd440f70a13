#include "libs/batching_model/shared_threshold.h"

#include <gtest/gtest.h>

#include "libs/batching_model/affine_fixture.h"

namespace tokenrouter {
namespace {

struct Set {
  double small_fixed, small_row, large_fixed, large_row;
};
constexpr Set kGpu = {6, 0.02, 24, 0.1};
constexpr Set kCpu = {25, 4, 80, 12};

// Vectors W1..W10 of the batching model, section 8 (rows per second).
struct Vector {
  const char* id;
  int requests;
  Set set;
  double r, q;
  int best;
  double best_rate, rate_of_one;
};
const Vector kVectors[] = {
    {"W1", 2, kGpu, .1, 1, 1, 207.16, 207.16},
    {"W2", 4, kGpu, .1, 1, 2, 379.94, 306.12},
    {"W3", 8, kGpu, .2, 1, 5, 614.65, 365.11},
    {"W4", 16, kGpu, .05, 1, 7, 1594.92, 846.90},
    {"W5", 16, kCpu, .1, 1, 8, 134.62, 101.51},
    {"W6", 64, kGpu, .1, 1, 34, 4866.26, 2207.47},
    {"W7", 64, kCpu, .2, 1, 38, 163.39, 149.24},
    {"W8", 16, kGpu, .1, .5, 9, 1034.78, 338.91},
    {"W9", 32, kCpu, .05, .7, 13, 169.56, 117.73},
    {"W10", 128, kGpu, .05, .8, 55, 9172.64, 2360.07},
};

TEST(SharedThresholdTest, MatchesTheExactVectors) {
  for (const Vector& v : kVectors) {
    SCOPED_TRACE(v.id);
    const auto small = AffineStepTimes(v.set.small_fixed, v.set.small_row, v.requests);
    const auto large = AffineStepTimes(v.set.large_fixed, v.set.large_row, v.requests);
    const SharedDeviceModel model{small, large, v.requests, v.r, v.q};
    EXPECT_NEAR(ThresholdRate(model, v.best), v.best_rate, 0.006);
    EXPECT_NEAR(ThresholdRate(model, 1), v.rate_of_one, 0.006);
    EXPECT_EQ(BestThreshold(model), v.best);
  }
}

TEST(SharedThresholdTest, MatchesTheFluidVectors) {
  const struct {
    int requests;
    Set set;
    double r;
    int threshold;
  } vectors[] = {{64, kGpu, .1, 35},
                 {64, kGpu, .05, 27},
                 {16, kGpu, .2, 11},
                 {64, kCpu, .2, 35},
                 {512, kGpu, .02, 160}};
  for (const auto& v : vectors) {
    const auto small = AffineStepTimes(v.set.small_fixed, v.set.small_row, v.requests);
    const auto large = AffineStepTimes(v.set.large_fixed, v.set.large_row, v.requests);
    EXPECT_EQ(FluidThreshold({small, large, v.requests, v.r, 1.0}), v.threshold)
        << v.requests << " " << v.r;
  }
}

TEST(SharedThresholdTest, CorrectsRowsToTokens) {
  EXPECT_DOUBLE_EQ(CommittedPerRow(0.1, 1.0), 1.0 / 1.1);
  EXPECT_DOUBLE_EQ(CommittedPerRow(0.25, 0.5), 1.25 / 1.5);
}

}  // namespace
}  // namespace tokenrouter
