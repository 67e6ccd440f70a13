#include "libs/concurrency/owner_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
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

// Blocks the loop, posts `count` closures, lets it go and stops it when all have run.
template <typename Closure>
void RunBehind(OwnerLoop* loop, int count, const Closure& closure) {
  std::promise<void> entered, release;
  loop->Start();
  ASSERT_TRUE(loop->Post([&] {
    entered.set_value();
    release.get_future().wait();
  }));
  entered.get_future().wait();
  for (int i = 0; i < count; ++i) ASSERT_TRUE(loop->Post(closure));
  release.set_value();
  loop->Stop();
}

TEST(OwnerLoopTest, CallsTheIdleHookAlsoWhileClosuresWait) {
  int since_idle = 0;
  int longest = 0;
  OwnerLoop loop({.name = "test", .idle = [&] {
                    longest = std::max(longest, since_idle);
                    since_idle = 0;
                    return absl::InfiniteDuration();
                  }});
  RunBehind(&loop, 5000, [&since_idle] { ++since_idle; });
  EXPECT_LE(longest, 256);
}

TEST(OwnerLoopTest, CallsTheIdleHookWhenABatchHasTakenItsTime) {
  absl::Time now = absl::UnixEpoch();
  int since_idle = 0;
  int longest = 0;
  OwnerLoop loop({.name = "test",
                  .batch_time = absl::Milliseconds(5),
                  .idle =
                      [&] {
                        longest = std::max(longest, since_idle);
                        since_idle = 0;
                        return absl::InfiniteDuration();
                      },
                  .now = [&now] { return now; }});
  RunBehind(&loop, 100, [&] {
    now += absl::Milliseconds(2);
    ++since_idle;
  });
  EXPECT_EQ(longest, 3) << "closures of 2 ms, batches of 5 ms";
}

TEST(OwnerLoopTest, HasHeardOnlyWhatItHasRun) {
  absl::Time now = absl::UnixEpoch();
  std::vector<absl::Duration> behind;
  OwnerLoop* hooked = nullptr;
  OwnerLoop loop({.name = "test",
                  .batch_time = absl::Seconds(1),
                  .idle =
                      [&] {
                        behind.push_back(now - hooked->heard_until());
                        return absl::InfiniteDuration();
                      },
                  .now = [&now] { return now; }});
  hooked = &loop;
  RunBehind(&loop, 3, [&now] { now += absl::Seconds(2); });
  // Its start; the closure that blocked it; the batch of three, of which two wait, one, none.
  const std::vector<absl::Duration> expected = {absl::ZeroDuration(), absl::ZeroDuration(),
                                                absl::Seconds(2), absl::Seconds(4),
                                                absl::Seconds(6)};
  EXPECT_EQ(behind, expected);
}

}  // namespace
}  // namespace tokenrouter
