#include "libs/synthetic/hash_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

constexpr int kPositions = 20000;

class HashModelTest : public testing::Test {
 protected:
  void SetUp() override {
    context_.parameters.temperature = 0.0f;
    history_.Append({ids_.data(), ids_.size()});
  }

  Choice Next(const HashModel& model, uint64_t history, Position length = 1) {
    absl::StatusOr<Choice> choice =
        model.Next(history, length, context_, context_.generated_counts, {}, &scratch_);
    EXPECT_THAT(choice, IsOk());
    return *choice;
  }

  SamplingContext context_;
  SamplerScratch scratch_;
  std::vector<TokenId> ids_ = std::vector<TokenId>(kPositions, 7);
  HashHistory history_;
};

TEST_F(HashModelTest, HistoryDependsOnIdsAndNotOnChunks) {
  HashHistory whole, parts;
  whole.Append(std::vector<TokenId>{1, 2, 3});
  parts.Append(std::vector<TokenId>{1, 9});
  parts.Truncate(1);
  parts.Append(std::vector<TokenId>{2});
  EXPECT_EQ(parts.At(2), whole.At(2));
  EXPECT_EQ(whole.Prefix(2).At(2), whole.At(2));
  EXPECT_NE(whole.At(3), whole.At(2));
}

TEST_F(HashModelTest, EntropyThresholdsRouteASensibleShare) {
  const HashModel model({.usable_ids = 150000});
  int above_045 = 0, above_15 = 0;
  for (Position i = 1; i <= kPositions; ++i) {
    const float entropy = Next(model, history_.At(i)).signals.entropy;
    EXPECT_GT(entropy, 0.0f);
    above_045 += entropy > 0.45f;
    above_15 += entropy > 1.5f;
  }
  EXPECT_NEAR(above_045 / double{kPositions}, 0.22, 0.03);
  EXPECT_NEAR(above_15 / double{kPositions}, 0.06, 0.03);
}

TEST_F(HashModelTest, RolesOfAPairAgreeAtTheirShareOfPositions) {
  const HashModel small({.seed = 3}),
      large({.seed = 3, .role = Role::kLarge, .acceptance_rate = 0.8});
  const HashModel other({.seed = 4});
  int agree = 0, agree_other = 0;
  for (Position i = 1; i <= kPositions; ++i) {
    const TokenId id = Next(small, history_.At(i)).id;
    agree += id == Next(large, history_.At(i)).id;
    agree_other += id == Next(other, history_.At(i)).id;
  }
  EXPECT_NEAR(agree / double{kPositions}, 0.8, 0.01);
  EXPECT_LT(agree_other, kPositions / 100);
}

TEST_F(HashModelTest, EndsTextsAtTheGivenRateAndNeverByAccident) {
  const HashModel never({.usable_ids = 12, .eos_ids = {3, 4}});
  const HashModel sometimes({.usable_ids = 12, .eos_ids = {3, 4}, .eos_probability = 0.05});
  int ends = 0;
  for (Position i = 1; i <= kPositions; ++i) {
    const TokenId id = Next(never, history_.At(i)).id;
    EXPECT_TRUE(id != 3 && id != 4);
    ends += Next(sometimes, history_.At(i)).id == 3;
  }
  EXPECT_NEAR(ends / double{kPositions}, 0.05, 0.01);
}

TEST_F(HashModelTest, MaskedEndsGiveWayToTheNextCandidate) {
  const HashModel model({.eos_ids = {3}, .eos_probability = 1.0});
  EXPECT_EQ(Next(model, history_.At(1)).id, 3);
  context_.stop_ids = {3};
  context_.mask_stop_ids_before = 2;
  EXPECT_NE(Next(model, history_.At(1), 1).id, 3);
  EXPECT_EQ(Next(model, history_.At(1), 2).id, 3);
}

TEST_F(HashModelTest, BiasAndPenaltiesReachTheCandidates) {
  const HashModel model({});
  const TokenId first = Next(model, history_.At(1)).id;
  context_.parameters.logit_bias = {{first, -100.0f}};
  const TokenId second = Next(model, history_.At(1)).id;
  EXPECT_NE(second, first);
  context_.parameters.frequency_penalty = 2.0f;
  context_.generated_counts = {{second, 100}};
  EXPECT_NE(Next(model, history_.At(1)).id, second);
}

}  // namespace
}  // namespace tokenrouter
