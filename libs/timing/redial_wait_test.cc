#include "libs/timing/redial_wait.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tokenrouter {
namespace {

TEST(RedialWaitTest, GrowsToItsCapAndStaysWithinHalfOfIt) {
  absl::Duration whole = kFirstRedial;
  for (int failures = 0; failures < 1000; ++failures) {
    const absl::Duration wait = RedialWait("worker", failures);
    EXPECT_GE(wait, whole / 2 - absl::Nanoseconds(1)) << failures;
    EXPECT_LE(wait, whole) << failures;
    whole = std::min(whole * kRedialFactor, kLongestRedial);
  }
  EXPECT_EQ(whole, kLongestRedial);
}

TEST(RedialWaitTest, KeepsClientsApart) {
  absl::Duration least = absl::InfiniteDuration();
  absl::Duration most = absl::ZeroDuration();
  for (int client = 0; client < 100; ++client) {
    const absl::Duration wait = RedialWait("worker-" + std::to_string(client), 0);
    EXPECT_EQ(wait, RedialWait("worker-" + std::to_string(client), 0));
    least = std::min(least, wait);
    most = std::max(most, wait);
  }
  EXPECT_GT(most - least, kFirstRedial * 0.4);
}

}  // namespace
}  // namespace tokenrouter
