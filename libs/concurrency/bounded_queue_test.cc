#include "libs/concurrency/bounded_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace tokenrouter {
namespace {

TEST(BoundedQueueTest, RefusesWhenFullAndKeepsOrder) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.TryPush(1));
  EXPECT_TRUE(queue.TryPush(2));
  EXPECT_FALSE(queue.TryPush(3));
  EXPECT_EQ(queue.PopAll(absl::ZeroDuration()), (std::vector<int>{1, 2}));
  EXPECT_TRUE(queue.TryPush(4));
}

TEST(BoundedQueueTest, CloseWakesTheConsumerAndRefusesPushes) {
  BoundedQueue<int> queue(2);
  std::thread closer([&queue] { queue.Close(); });
  EXPECT_TRUE(queue.PopAll(absl::InfiniteDuration()).empty());
  closer.join();
  EXPECT_FALSE(queue.TryPush(1));
  EXPECT_TRUE(queue.closed());
}

TEST(BoundedQueueTest, KeepsWhatWasQueuedBeforeClose) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  ASSERT_TRUE(queue.TryPush(std::make_unique<int>(5)));
  queue.Close();
  const auto items = queue.PopAll(absl::InfiniteDuration());
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(*items[0], 5);
}

TEST(BoundedQueueTest, DeliversEveryItemOfManyProducersOnce) {
  constexpr int kProducers = 4, kItems = 1000;
  BoundedQueue<int> queue(16);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&queue] {
      for (int i = 0; i < kItems; ++i) {
        while (!queue.TryPush(1)) std::this_thread::yield();
      }
    });
  }
  int received = 0;
  while (received < kProducers * kItems) {
    received += static_cast<int>(queue.PopAll(absl::Milliseconds(100)).size());
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(received, kProducers * kItems);
  EXPECT_EQ(queue.size(), 0u);
}

}  // namespace
}  // namespace tokenrouter
