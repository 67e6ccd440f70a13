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
      {5, {}, {3}, 5},               // At the base neither.
      {7, {1, 2}, {1, 2}, 7},        // The same again.
      {7, {1, 2}, {1, 3}, 6},        // Differs at the second.
      {7, {1, 2}, {9}, 5},           // Differs at once.
      {7, {1, 2}, {1}, 6},           // Became shorter.
      {7, {1, 2}, {}, 5},            // Was dropped.
      {6, {1, 2}, {1, 2, 3}, 6},     // It never knew the second.
      {7, {1, 2}, {1, 2, 3, 4}, 7},  // Grew.
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
