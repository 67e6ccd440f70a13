#include "services/scheduler/state/retry_advice.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

// Its jitter taken out again.
absl::Duration WaitOf(const RetryAdvice& advice, int queued,
                      absl::Duration at_least = absl::ZeroDuration()) {
  const RetryAdvice fresh{CoreOptions()};
  const double jitter = absl::FDivDuration(fresh.After(0, absl::ZeroDuration(), "r"),
                                           CoreOptions().least_retry_after);
  return absl::Floor(advice.After(queued, at_least, "r") / jitter + absl::Milliseconds(0.5),
                     absl::Milliseconds(1));
}

TEST(RetryAdvice, IsTheTimeThatTheQueueTakesWithinItsBounds) {
  RetryAdvice advice{CoreOptions()};
  EXPECT_EQ(WaitOf(advice, 1000), absl::Seconds(1)) << "nothing has ended yet";
  for (int i = 0; i < 20; ++i) advice.NoteEnd(kStart + i * absl::Milliseconds(100));
  EXPECT_EQ(WaitOf(advice, 3), absl::Seconds(1));
  EXPECT_EQ(WaitOf(advice, 40), absl::Seconds(4));
  EXPECT_EQ(WaitOf(advice, 4000), absl::Seconds(30));
  EXPECT_EQ(WaitOf(advice, 3, absl::Seconds(2)), absl::Seconds(2));
}

TEST(RetryAdvice, IsNotMisledByAnIdleNight) {
  RetryAdvice advice{CoreOptions()};
  advice.NoteEnd(kStart);
  for (int i = 0; i < 50; ++i) advice.NoteEnd(kStart + absl::Hours(8) + i * absl::Milliseconds(10));
  EXPECT_LT(WaitOf(advice, 10), absl::Seconds(3));
}

TEST(RetryAdvice, KeepsRequestsApart) {
  const RetryAdvice advice{CoreOptions()};
  const absl::Duration a = advice.After(0, absl::ZeroDuration(), "a");
  EXPECT_EQ(a, advice.After(0, absl::ZeroDuration(), "a"));
  EXPECT_NE(a, advice.After(0, absl::ZeroDuration(), "b"));
  EXPECT_GE(a, absl::Seconds(1));
  EXPECT_LE(a, absl::Seconds(1.5));
}

}  // namespace
}  // namespace tokenrouter
