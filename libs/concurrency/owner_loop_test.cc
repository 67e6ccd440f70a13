#include "libs/concurrency/owner_loop.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace tokenrouter {
namespace {

TEST(OwnerLoopTest, RunsClosuresInOrderOnOneThread) {
  OwnerLoop loop({.name = "test"});
  loop.Start();
  std::vector<int> seen;
  std::thread::id thread;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(loop.Post([&seen, &thread, i] {
      if (i == 0) thread = std::this_thread::get_id();
      EXPECT_EQ(std::this_thread::get_id(), thread);
      seen.push_back(i);
    }));
  }
  loop.Stop();
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[i], i);
}

TEST(OwnerLoopTest, RefusesWhenTheMailboxIsFullOrStopped) {
  std::promise<void> entered, release;
  OwnerLoop loop({.name = "test", .mailbox_limit = 1});
  loop.Start();
  ASSERT_TRUE(loop.Post([&] {
    entered.set_value();
    release.get_future().wait();
  }));
  entered.get_future().wait();
  EXPECT_TRUE(loop.Post([] {}));
  EXPECT_FALSE(loop.Post([] {}));
  release.set_value();
  loop.Stop();
  EXPECT_FALSE(loop.Post([] {}));
}

TEST(OwnerLoopTest, CallsTheIdleHookWhenItsTimerIsDue) {
  std::promise<void> third;
  int calls = 0;
  OwnerLoop loop({.name = "test", .idle = [&] {
                    if (++calls == 3) third.set_value();
                    return calls < 3 ? absl::Milliseconds(1) : absl::InfiniteDuration();
                  }});
  loop.Start();
  third.get_future().wait();
  loop.Stop();
  EXPECT_GE(calls, 3);
}

}  // namespace
}  // namespace tokenrouter
