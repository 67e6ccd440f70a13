#include "libs/torch_engine/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace tokenrouter {
namespace {

constexpr int64_t kLarge = ThreadPool::kOperationsWorthAThread;

TEST(ThreadPoolTest, RunsEveryItemOnceAndShowsWhatItWrote) {
  ThreadPool pool(4, 0);
  for (int round = 0; round < 2000; ++round) {
    const int items = round % 37;
    std::vector<int> runs(items, 0);
    pool.For(items, kLarge, [&](int64_t item, int) { ++runs[item]; });
    for (int item = 0; item < items; ++item) ASSERT_EQ(runs[item], 1) << round;
  }
}

TEST(ThreadPoolTest, NumbersThreadsSoThatEachHasItsOwnScratch) {
  ThreadPool pool(3, 0);
  std::vector<std::atomic<int>> users(3);
  pool.For(1000, kLarge, [&](int64_t, int thread) {
    ASSERT_LT(thread, 3);
    EXPECT_EQ(users[thread].fetch_add(1), 0);
    users[thread].fetch_sub(1);
  });
}

TEST(ThreadPoolTest, StopsWhileWorkersSleep) {
  for (int i = 0; i < 20; ++i) ThreadPool pool(3, 0);
}

TEST(ThreadPoolTest, RunsASmallJobOnTheCallingThread) {
  ThreadPool pool(3, 0);
  pool.For(100, kLarge - 1, [](int64_t, int thread) { EXPECT_EQ(thread, 0); });
}

TEST(ThreadPoolTest, RunsWithoutWorkersInOrder) {
  ThreadPool pool(1, 0);
  std::vector<int64_t> order;
  pool.For(3, kLarge, [&](int64_t item, int) { order.push_back(item); });
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2}));
}

}  // namespace
}  // namespace tokenrouter
