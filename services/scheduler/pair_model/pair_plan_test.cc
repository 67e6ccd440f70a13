#include "services/scheduler/pair_model/pair_plan.h"

#include <gtest/gtest.h>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

// The set h200 of the batching model: 1.5B and 32B.
PlanInputs H200(int32_t requests) {
  PlanInputs inputs{.requests = requests};
  inputs.curves[0] = {.base_ms = 3, .row_ms = 0, .id_ms = .01};
  inputs.curves[1] = {.base_ms = 15, .row_ms = .02, .id_ms = .128};
  return inputs;
}

TEST(PairPlanTest, PredictsWhatRoutingIsWorthOnTwoDevices) {
  TR_ASSERT_OK_AND_ASSIGN(const PairPlan plan, MakePlan(H200(16)));
  EXPECT_NEAR(plan.prediction.routed_per_s / plan.prediction.large_alone_per_s, 2.62, .1);
}

TEST(PairPlanTest, ASharedDeviceGetsAThreshold) {
  PlanInputs inputs = H200(16);
  inputs.shared_device = true;
  TR_ASSERT_OK_AND_ASSIGN(const PairPlan plan, MakePlan(inputs));
  EXPECT_GT(plan.prediction.policy.m_large, 4);
  EXPECT_NEAR(plan.prediction.routed_per_s / plan.prediction.large_alone_per_s, 1.95, .1);
}

TEST(PairPlanTest, RatesAtTheirEndsAndEmptyCurvesStillMakeAPlan) {
  PlanInputs inputs{.requests = 3, .r = 0, .q = 1};
  EXPECT_TRUE(MakePlan(inputs).ok());
  inputs.r = 1;
  inputs.q = 0;
  EXPECT_TRUE(MakePlan(inputs).ok());
}

}  // namespace
}  // namespace tokenrouter
