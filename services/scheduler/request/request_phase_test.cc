#include "services/scheduler/request/request_phase.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

const absl::Time kStart = absl::UnixEpoch();

TEST(RequestPhaseTest, KeepsTheTimeWhileThePhaseStays) {
  RequestPhase phase(1, kStart);
  EXPECT_EQ(phase, Phase::kWaiting);
  phase.Change(Phase::kWaiting, kStart + absl::Seconds(1));
  EXPECT_EQ(phase.since(), kStart);
  phase.Change(Phase::kRunning, kStart + absl::Seconds(2));
  EXPECT_EQ(phase, Phase::kRunning);
  EXPECT_EQ(phase.since(), kStart + absl::Seconds(2));
}

TEST(RequestPhaseTest, ReleasesOnlyWhatIsNotHeld) {
  RequestPhase phase(1, kStart);
  phase.Change(Phase::kReleasable, kStart);
  EXPECT_DEATH(phase.Change(Phase::kHeld, kStart), "from releasable to held");
}

TEST(RequestPhaseTest, NeverLeavesItsEnd) {
  for (int to = 0; to < kPhases; ++to) {
    RequestPhase phase(1, kStart);
    phase.Change(Phase::kEnded, kStart);
    EXPECT_DEATH(phase.Change(static_cast<Phase>(to), kStart), "from ended");
  }
}

}  // namespace
}  // namespace tokenrouter
