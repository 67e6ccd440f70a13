#include "services/scheduler/workers/running_step.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
constexpr absl::Duration kPredicted = absl::Milliseconds(20);

TEST(RunningStep, HasTheRestOfItsPredictionLeft) {
  const RunningStep step = {.since = kStart, .rows = 3, .predicted = kPredicted};
  EXPECT_EQ(Remaining(step, 0, kStart + absl::Milliseconds(5)), absl::Milliseconds(15));
  EXPECT_EQ(Remaining(step, 0, kStart + absl::Milliseconds(25)), absl::ZeroDuration());
  EXPECT_GT(Remaining(step, .1, kStart + kPredicted), absl::Milliseconds(1))
      << "a step that has not ended by then takes longer";
}

TEST(RunningStep, IsNotWaitedForWhenItsEndIsUnknown) {
  const RunningStep step = {.since = kStart, .rows = 3, .predicted = kPredicted};
  EXPECT_EQ(LatestEnd(step, .1), kStart + absl::Milliseconds(26));
}

}  // namespace
}  // namespace tokenrouter
