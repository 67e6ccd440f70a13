#include "services/scheduler/request/timer_queue.h"

#include <gtest/gtest.h>

#include <utility>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using S = ScriptedScheduler;

constexpr absl::Time kNow = absl::UnixEpoch();

TEST(TimerQueueTest, HoldsOneEntryPerRequestAndKind) {
  TimerQueue timers;
  timers.Arm({kNow + absl::Minutes(10), 1, Timer::Kind::kWait});
  timers.Arm({kNow + absl::Seconds(1), 1, Timer::Kind::kStall});
  timers.Arm({kNow + absl::Seconds(5), 1, Timer::Kind::kWait});
  EXPECT_EQ(timers.size(), 2u);
  EXPECT_FALSE(timers.PopDue(kNow + absl::Milliseconds(999)));
  EXPECT_EQ(timers.PopDue(kNow + absl::Hours(1))->kind, Timer::Kind::kStall);
  EXPECT_EQ(timers.PopDue(kNow + absl::Hours(1))->at, kNow + absl::Seconds(5));
  EXPECT_FALSE(timers.PopDue(kNow + absl::Hours(1)));
}

TEST(TimerQueueTest, CancelsOneOrAllOfARequest) {
  TimerQueue timers;
  for (const uint64_t request : {1, 2}) {
    timers.Arm({kNow, request, Timer::Kind::kWait});
    timers.Arm({kNow, request, Timer::Kind::kDeadline});
  }
  timers.Cancel(1, Timer::Kind::kWait);
  timers.Cancel(1, Timer::Kind::kWait);
  EXPECT_EQ(timers.size(), 3u);
  timers.CancelAll(2);
  EXPECT_EQ(timers.size(), 1u);
  EXPECT_EQ(timers.PopDue(kNow)->request, 1u);
}

// Two requests alternate on the one slot of a large worker: each waits for it again and again.
TEST(TimerQueueTest, IsBoundedByTheLiveRequests) {
  S s;
  s.Attach(Role::kSmall, S::kSmall);
  wire::WorkerHello large = S::Hello(Role::kLarge, "large");
  large.set_max_sequences(1);
  s.Attach(S::kLarge, large);
  s.Connect();
  const auto hand_off = [&s](uint64_t key, Role from) {
    const RequestMachine& request = *s.core.requests().Find(key);
    const char author = from == Role::kSmall ? 1 : 2;
    s.Send(request.side(from).worker,
           S::HandingOff(
               S::Row(key, request.side(from).epoch, request.history().committed(), {40}, author),
               Other(from)));
  };
  uint64_t there = 1;
  uint64_t waits = 2;
  for (const uint64_t key : {there, waits}) {
    s.Submit(key);
    hand_off(key, Role::kSmall);
  }
  for (int visit = 0; visit < 40; ++visit) {
    ASSERT_EQ(s.core.large_waiting(), 1u) << visit;
    hand_off(there, Role::kLarge);
    s.Closed(S::kLarge, there);
    hand_off(there, Role::kSmall);
    std::swap(there, waits);
  }
  EXPECT_LE(s.core.timers(), 4u) << "one wait, and the watch of each grant";
  s.Cancel(1);
  s.Cancel(2);
  EXPECT_EQ(s.core.timers(), 0u) << "nothing is left of requests that have ended";
}

}  // namespace
}  // namespace tokenrouter
