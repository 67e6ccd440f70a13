#include "tools/simulate/optimum.h"

#include "libs/batching_model/baseline_search.h"
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
    TR_ASSERT_OK_AND_ASSIGN(const auto optimum, OptimalCommittedRate(H200(1, shared)));
    TR_ASSERT_OK_AND_ASSIGN(const auto simulated, Simulate(H200(1, shared), {}));
    EXPECT_NEAR(simulated.committed_per_s / optimum.value(), 1, 0.01);
  }
}

TEST(OptimumTest, TheModelReachesItWithinOnePercent) {
  for (const bool shared : {false, true}) {
    for (const int requests : {4, 8}) {
      SCOPED_TRACE(::testing::Message() << requests << " " << shared);
      const SimulationSetup setup = H200(requests, shared);
      TR_ASSERT_OK_AND_ASSIGN(const auto optimum, OptimalCommittedRate(setup));
      TR_ASSERT_OK_AND_ASSIGN(const BatchingPolicy policy,
                              BestOfFamily(setup, BatchingPolicy::Kind::kModel));
      TR_ASSERT_OK_AND_ASSIGN(const auto simulated, Simulate(setup, policy));
      EXPECT_NEAR(simulated.committed_per_s / optimum.value(), 1, 0.012);
    }
  }
}

TEST(OptimumTest, SaysWhenItCannotBeComputed) {
  TR_ASSERT_OK_AND_ASSIGN(const auto many, OptimalCommittedRate(H200(17, false)));
  EXPECT_EQ(many, std::nullopt);
  SimulationSetup hop = H200(4, false);
  hop.hop_ms = 1;
  TR_ASSERT_OK_AND_ASSIGN(const auto with_hop, OptimalCommittedRate(hop));
  EXPECT_EQ(with_hop, std::nullopt);
}

}  // namespace
}  // namespace tokenrouter
