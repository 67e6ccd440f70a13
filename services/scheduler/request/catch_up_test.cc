#include "services/scheduler/request/catch_up.h"

#include <gtest/gtest.h>

#include <vector>

namespace tokenrouter {
namespace {

struct Case {
  Position known;
  std::vector<TokenId> replaced;
  std::vector<TokenId> replacement;
  Position left;
};

TEST(KnownAfterReplace, KeepsTheCommonPrefixAndNoMore) {
  const Case cases[] = {
      {4, {1, 2}, {3}, 4},           // Below the base nothing changes.
      {5, {}, {3}, 5},               // At the base nothing changes either.
      {7, {1, 2}, {1, 2}, 7},        // The replacement is the same.
      {7, {1, 2}, {1, 3}, 6},        // It differs at the second id.
      {7, {1, 2}, {9}, 5},           // It differs at the first id.
      {7, {1, 2}, {1}, 6},           // It is shorter.
      {7, {1, 2}, {}, 5},            // It is empty.
      {6, {1, 2}, {1, 2, 3}, 6},     // The side did not know the second id.
      {7, {1, 2}, {1, 2, 3, 4}, 7},  // It is longer.
  };
  for (const Case& c : cases) {
    EXPECT_EQ(KnownAfterReplace(c.known, 5, c.replaced, c.replacement), c.left)
        << "known " << c.known;
  }
}

TEST(KnownAfterReplaceDeathTest, RefusesToKnowMoreThanThereWas) {
  EXPECT_DEATH(KnownAfterReplace(8, 5, std::vector<TokenId>{1, 2}, {}), "known 8");
}

}  // namespace
}  // namespace tokenrouter
