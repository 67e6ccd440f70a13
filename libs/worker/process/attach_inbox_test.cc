#include "libs/worker/process/attach_inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace tokenrouter {
namespace {

using ::testing::SizeIs;

const absl::Time kNow = absl::UnixEpoch();

TEST(AttachInboxTest, RefusesBeyondItsLimitButAlwaysTakesTheEnd) {
  AttachInbox inbox(2);
  inbox.Begin(1);
  EXPECT_TRUE(inbox.Push(1, {}, kNow));
  EXPECT_TRUE(inbox.Push(1, {}, kNow));
  EXPECT_FALSE(inbox.Push(1, {}, kNow));
  inbox.End(1, absl::UnavailableError("gone"));
  const AttachInbox::Content content = inbox.Take(absl::ZeroDuration());
  EXPECT_THAT(content.frames, SizeIs(2));
  EXPECT_EQ(content.ended, absl::UnavailableError("gone"));
}

TEST(AttachInboxTest, ForgetsEverythingOfAnEarlierStream) {
  AttachInbox inbox(2);
  inbox.Begin(1);
  EXPECT_TRUE(inbox.Push(1, {}, kNow));
  inbox.End(1, absl::OkStatus());
  inbox.Begin(2);
  EXPECT_TRUE(inbox.Push(1, {}, kNow));
  inbox.End(1, absl::UnavailableError("late"));
  const AttachInbox::Content content = inbox.Take(absl::ZeroDuration());
  EXPECT_THAT(content.frames, SizeIs(0));
  EXPECT_FALSE(content.ended.has_value());
}

TEST(AttachInboxTest, KeepsTheOrderOfAnotherThreadAndEndsLast) {
  constexpr uint64_t kFrames = 5000;
  AttachInbox inbox(64);
  inbox.Begin(1);
  std::thread stream([&inbox] {
    for (uint64_t term = 1; term <= kFrames; ++term) {
      wire::CommandFrame frame;
      frame.set_term(term);
      while (!inbox.Push(1, frame, kNow + absl::Seconds(term))) std::this_thread::yield();
    }
    inbox.End(1, absl::UnavailableError("gone"));
  });
  uint64_t last = 0;
  for (bool ended = false; !ended;) {
    const AttachInbox::Content content = inbox.Take(absl::InfiniteDuration());
    for (const AttachInbox::Frame& frame : content.frames) {
      EXPECT_EQ(frame.command.term(), ++last);
      EXPECT_EQ(frame.arrived, kNow + absl::Seconds(last));
    }
    ended = content.ended.has_value();
  }
  EXPECT_EQ(last, kFrames);
  stream.join();
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
