#include "libs/timing/jitter.h"

#include <gtest/gtest.h>

#include <string>

namespace tokenrouter {
namespace {

TEST(JitterTest, IsASureDrawByNameAndNumber) {
  EXPECT_EQ(Jitter("worker-1", 3), Jitter("worker-1", 3));
  EXPECT_NE(Jitter("worker-1", 3), Jitter("worker-1", 4));
  EXPECT_NE(Jitter("worker-1", 3), Jitter("worker-2", 3));
}

TEST(JitterTest, SpreadsNeighboursEvenly) {
  int tenths[10] = {};
  for (int i = 0; i < 10000; ++i) {
    const double share = Jitter("request-" + std::to_string(i), 0);
    ASSERT_GE(share, 0);
    ASSERT_LT(share, 1);
    ++tenths[static_cast<int>(share * 10)];
  }
  for (const int count : tenths) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace tokenrouter
