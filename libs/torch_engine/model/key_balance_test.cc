#include "libs/torch_engine/model/key_balance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tokenrouter {
namespace {

TEST(KeyBalanceTest, BringsChannelsWithinAFactorOfTwo) {
  const std::vector<float> sizes = {100, 0.3f, 7, 1, 1000, 1e-3f, 20, 5};
  const std::vector<float> factors = KeyBalance(sizes, 4, 0);
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_LE(sizes[i] / factors[i], 1.5f) << i;
    EXPECT_GE(sizes[i] / factors[i], 0.7f) << i;
  }
}

TEST(KeyBalanceTest, GivesChannelsThatRotateTogetherOneFactor) {
  const std::vector<float> factors = KeyBalance(std::vector<float>{64, 1, 1, 16, 8, 2}, 6, 4);
  EXPECT_EQ(factors, (std::vector<float>{64, 16, 64, 16, 8, 2}));
}

TEST(KeyBalanceTest, RoundsNothing) {
  for (const float factor : KeyBalance(std::vector<float>{3, 0.7f, 123, 1e-30f, 1e30f}, 5, 2)) {
    int exponent = 0;
    EXPECT_EQ(std::frexp(factor, &exponent), 0.5f);
  }
}

TEST(KeyBalanceTest, LeavesChannelsThatAreAlwaysZeroAlone) {
  EXPECT_EQ(KeyBalance(std::vector<float>{0, 0, 0, 4}, 4, 2), (std::vector<float>{1, 1, 1, 4}));
}

}  // namespace
}  // namespace tokenrouter
