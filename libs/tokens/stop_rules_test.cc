#include "libs/tokens/stop_rules.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

TEST(StopRulesTest, EndsAtAStopIdOrAtTheLengthLimit) {
  const StopRules rules{.stop_ids = {5, 9}, .max_new_tokens = 4};
  EXPECT_EQ(CheckStop(rules, 1, 3), FinishReason::kNone);
  EXPECT_EQ(CheckStop(rules, 9, 1), FinishReason::kStop);
  EXPECT_EQ(CheckStop(rules, 1, 4), FinishReason::kLength);
  EXPECT_EQ(CheckStop(rules, 5, 4), FinishReason::kStop) << "a stop id on the last token is a stop";
}

TEST(StopRulesTest, IgnoresStopIdsWhenAskedOrBeforeTheMinimum) {
  StopRules rules{.stop_ids = {5}, .ignore_eos = true, .max_new_tokens = 9};
  EXPECT_EQ(CheckStop(rules, 5, 1), FinishReason::kNone);
  rules.ignore_eos = false;
  rules.min_new_tokens = 3;
  EXPECT_TRUE(MasksStopIds(rules, 2));
  EXPECT_FALSE(MasksStopIds(rules, 3));
  EXPECT_EQ(CheckStop(rules, 5, 2), FinishReason::kNone);
  EXPECT_EQ(CheckStop(rules, 5, 3), FinishReason::kStop);
}

TEST(StopRulesTest, TheIdsOfTheModelsJoinThoseOfTheRequest) {
  StopRules rules{.stop_ids = {9, 5}};
  AddEosIds(std::vector<TokenId>{7, 5}, &rules);
  EXPECT_EQ(rules.stop_ids, (std::vector<TokenId>{5, 7, 9}));
}

TEST(StopRulesTest, NamesEveryReason) {
  EXPECT_STREQ(FinishReasonName(FinishReason::kNone), "none");
  EXPECT_STREQ(FinishReasonName(FinishReason::kStop), "stop");
  EXPECT_STREQ(FinishReasonName(FinishReason::kLength), "length");
  EXPECT_STREQ(FinishReasonName(FinishReason::kCancelled), "cancelled");
  EXPECT_STREQ(FinishReasonName(FinishReason::kError), "error");
}

}  // namespace
}  // namespace tokenrouter
