#include "libs/torch_engine/step_time_estimate.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

TEST(StepTimeEstimateTest, KnowsNothingBeforeTheFirstStep) {
  EXPECT_EQ(StepTimeEstimate().Predict(4), absl::ZeroDuration());
}

TEST(StepTimeEstimateTest, InterpolatesBetweenSizesAndScalesBeyond) {
  StepTimeEstimate estimate;
  estimate.Add(4, absl::Milliseconds(20));
  estimate.Add(16, absl::Milliseconds(60));
  const auto milliseconds = [&](int64_t ids) {
    return absl::ToDoubleMilliseconds(estimate.Predict(ids));
  };
  EXPECT_NEAR(milliseconds(1), 20, 1e-6);
  EXPECT_NEAR(milliseconds(4), 20, 1e-6);
  EXPECT_NEAR(milliseconds(10), 40, 1e-6);
  EXPECT_NEAR(milliseconds(16), 60, 1e-6);
  EXPECT_NEAR(milliseconds(32), 120, 1e-6);
}

TEST(StepTimeEstimateTest, FollowsTheMachineWhenItGetsSlower) {
  StepTimeEstimate estimate;
  estimate.Add(1, absl::Milliseconds(10));
  for (int i = 0; i < 30; ++i) estimate.Add(1, absl::Milliseconds(30));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(estimate.Predict(1)), 30, 0.5);
}

}  // namespace
}  // namespace tokenrouter
