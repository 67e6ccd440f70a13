#include "tools/simulate/optimum.h"

#include <cmath>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

SimulationSetup H200(int requests, bool shared) {
  return {.small = [](int rows, int64_t) { return 3 + .01 * rows; },
          .large = [](int rows,
                      int64_t ids) { return 15 + .02 * rows + .128 * static_cast<double>(ids); },
          .shared_device = shared,
          .requests = requests,
          .r = .1,
          .duration_ms = 4e5,
          .desynchronised = true};
}

TEST(OptimumTest, OneRequestHasNothingToDecide) {
  for (const bool shared : {false, true}) {
    TR_ASSERT_OK_AND_ASSIGN(const auto optimum, FindOptimum(H200(1, shared)));
    TR_ASSERT_OK_AND_ASSIGN(const auto simulated, Simulate(H200(1, shared), {}));
    EXPECT_NEAR(simulated.committed_per_s / optimum->committed_per_s, 1, 0.01);
  }
}

TEST(OptimumTest, TheModelReachesItWithinOnePercent) {
  for (const bool shared : {false, true}) {
    for (const int requests : {2, 4, 8}) {
      SCOPED_TRACE(::testing::Message() << requests << " " << shared);
      TR_ASSERT_OK_AND_ASSIGN(const auto optimum, FindOptimum(H200(requests, shared)));
      TR_ASSERT_OK_AND_ASSIGN(const double gap,
                              GapToOptimum(*optimum, BatchingPolicy::Kind::kModel));
      EXPECT_LT(gap, 0.01);
      EXPECT_GT(gap, -0.005);  // Nothing beats the optimum.
    }
  }
}

TEST(OptimumTest, LargeStepsOfManySmallOnesAreSolvedToo) {
  SimulationSetup setup = H200(8, false);
  setup.small = [](int rows, int64_t) { return 22 + 7.2 * rows; };
  setup.large = [](int rows, int64_t ids) { return 45 + rows + 19 * static_cast<double>(ids); };
  setup.r = .05;
  setup.duration_ms = 2e6;
  TR_ASSERT_OK_AND_ASSIGN(const auto optimum, FindOptimum(setup));
  ASSERT_TRUE(optimum.has_value());
  TR_ASSERT_OK_AND_ASSIGN(const double gap, GapToOptimum(*optimum, BatchingPolicy::Kind::kModel));
  EXPECT_LT(std::abs(gap), 0.01);
}

TEST(OptimumTest, SaysWhenItCannotBeComputed) {
  TR_ASSERT_OK_AND_ASSIGN(const auto many, FindOptimum(H200(17, false)));
  EXPECT_FALSE(many.has_value());
  SimulationSetup hop = H200(4, false);
  hop.hop_ms = 1;
  TR_ASSERT_OK_AND_ASSIGN(const auto with_hop, FindOptimum(hop));
  EXPECT_FALSE(with_hop.has_value());
}

}  // namespace
}  // namespace tokenrouter
