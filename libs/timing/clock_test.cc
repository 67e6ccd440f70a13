#include <gtest/gtest.h>

#include "libs/timing/real_clock.h"
#include "libs/timing/simulated_clock.h"

namespace tokenrouter {
namespace {

TEST(RealClockTest, NeverGoesBack) {
  absl::Time last = RealClock::Get().Now();
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = RealClock::Get().Now();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(SimulatedClockTest, AdvancesOnlyExplicitly) {
  SimulatedClock clock;
  const absl::Time start = clock.Now();
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(absl::Milliseconds(5));
  EXPECT_EQ(clock.Now() - start, absl::Milliseconds(5));
  clock.SetTo(start + absl::Seconds(1));
  EXPECT_EQ(clock.Now() - start, absl::Seconds(1));
}

}  // namespace
}  // namespace tokenrouter
