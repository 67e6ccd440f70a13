#include "libs/worker_service/attach_inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace tokenrouter {
namespace {

using ::testing::SizeIs;

TEST(AttachInboxTest, RefusesBeyondItsLimitButAlwaysTakesTheEnd) {
  AttachInbox inbox(2);
  inbox.Begin(1);
  EXPECT_TRUE(inbox.Push(1, {}));
  EXPECT_TRUE(inbox.Push(1, {}));
  EXPECT_FALSE(inbox.Push(1, {}));
  inbox.End(1, absl::UnavailableError("gone"));
  const AttachInbox::Content content = inbox.Take(absl::ZeroDuration());
  EXPECT_THAT(content.frames, SizeIs(2));
  EXPECT_EQ(content.ended, absl::UnavailableError("gone"));
}

TEST(AttachInboxTest, ForgetsEverythingOfAnEarlierStream) {
  AttachInbox inbox(2);
  inbox.Begin(1);
  EXPECT_TRUE(inbox.Push(1, {}));
  inbox.End(1, absl::OkStatus());
  inbox.Begin(2);
  EXPECT_TRUE(inbox.Push(1, {}));
  inbox.End(1, absl::UnavailableError("late"));
  const AttachInbox::Content content = inbox.Take(absl::ZeroDuration());
  EXPECT_THAT(content.frames, SizeIs(0));
  EXPECT_FALSE(content.ended.has_value());
}

TEST(AttachInboxTest, WakesTheConsumer) {
  AttachInbox inbox(2);
  std::thread waker([&inbox] { inbox.Wake(); });
  while (!inbox.Take(absl::InfiniteDuration()).woken) {
  }
  waker.join();
}

}  // namespace
}  // namespace tokenrouter
