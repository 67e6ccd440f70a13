#include "libs/tokens/token_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TokenHistoryTest, KeepsAuthorsOfCommittedTokens) {
  TokenHistory history({1, 2});
  history.Commit(3, Author::kSmall);
  history.Commit(4, Author::kLarge);
  EXPECT_THAT(history.ids(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(history.prompt_length(), 2);
  EXPECT_EQ(history.generated(), 2);
  EXPECT_EQ(history.author(0), Author::kPrompt);
  EXPECT_EQ(history.author(3), Author::kLarge);
  EXPECT_EQ(history.written_by(Author::kSmall), 1);
  EXPECT_EQ(history.written_by(Author::kLarge), 1);
}

TEST(TokenHistoryTest, ReplacesTheTailAsAWholeAndDropsItOnCommit) {
  TokenHistory history({1});
  history.ReplaceTail(std::vector<TokenId>{7, 8, 9});
  history.ReplaceTail(std::vector<TokenId>{5, 6});
  EXPECT_THAT(history.tail(), ElementsAre(5, 6));
  EXPECT_EQ(history.committed(), 1);
  EXPECT_EQ(history.size(), 3);
  history.Commit(5, Author::kSmall);
  EXPECT_THAT(history.tail(), IsEmpty());
  EXPECT_THAT(history.ids(), ElementsAre(1, 5));
}

TEST(TokenHistoryDeathTest, RefusesToReadAuthorsOfTheTail) {
  TokenHistory history({1});
  history.ReplaceTail(std::vector<TokenId>{7});
  EXPECT_DEATH(history.author(1), "1 of 1");
}

}  // namespace
}  // namespace tokenrouter
