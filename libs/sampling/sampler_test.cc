#include "libs/sampling/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "libs/sampling/sampler_reference.h"
#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr SignalRequest kAllSignals{.max_probability = true, .margin = true, .top_logits = 3};

std::vector<float> RandomRow(int64_t ids, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> row(ids);
  for (float& x : row) x = normal(random);
  return row;
}

class SamplerTest : public testing::Test {
 protected:
  absl::StatusOr<Choice> Sample(const std::vector<float>& row, Position position = 0,
                                SignalRequest signals = {}) {
    return SampleRow(row, context_, position, signals, static_cast<int32_t>(row.size()), &scratch_);
  }

  SamplingContext context_{.parameters = {.temperature = 0.0f}};
  SamplerScratch scratch_;
};

TEST_F(SamplerTest, GreedyTakesTheLowestIdOfTies) {
  TR_ASSERT_OK_AND_ASSIGN(const Choice choice, Sample({1, 4, 2, 4}));
  EXPECT_EQ(choice.id, 1);
}

TEST_F(SamplerTest, TinyTemperatureIsGreedy) {
  context_.parameters.temperature = 1e-40f;
  TR_ASSERT_OK_AND_ASSIGN(const Choice choice, Sample({1, 2, 4, 3}));
  EXPECT_EQ(choice.id, 2);
}

TEST_F(SamplerTest, IdsBeyondTheUsableOnesDoNotExist) {
  const std::vector<float> row = {1, 2, 99, kNan};
  TR_ASSERT_OK_AND_ASSIGN(const Choice choice,
                          SampleRow(row, context_, 0, kAllSignals, 2, &scratch_));
  EXPECT_EQ(choice.id, 1);
  EXPECT_NEAR(choice.signals.max_probability, 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_THAT(choice.signals.top_logits, testing::ElementsAre(testing::Pair(1, 2), testing::_));
}

TEST_F(SamplerTest, SignalsAndLogprobAreThoseOfTheRawDistribution) {
  context_.parameters.logit_bias = {{7, 50.0f}};
  for (const int64_t ids : {8, 64, 1000, 30000}) {
    const std::vector<float> row = RandomRow(ids, ids);
    const std::vector<double> raw(row.begin(), row.end());
    const ReferenceEvidence expected = ReferenceSignals(raw);
    TR_ASSERT_OK_AND_ASSIGN(const Choice choice, Sample(row, 0, kAllSignals));
    EXPECT_EQ(choice.id, 7);
    EXPECT_NEAR(choice.logprob, expected.log_probability[7], 1e-5);
    EXPECT_NEAR(choice.signals.entropy, expected.entropy, 1e-5);
    EXPECT_NEAR(choice.signals.max_probability, expected.max_probability, 1e-6);
    EXPECT_NEAR(choice.signals.margin, expected.margin, 1e-6);
    ASSERT_EQ(choice.signals.top_logits.size(), 3u);
    EXPECT_GE(choice.signals.top_logits[0].second, choice.signals.top_logits[1].second);
    EXPECT_EQ(choice.signals.top_logits[0].second, *std::max_element(row.begin(), row.end()));
  }
}

TEST_F(SamplerTest, MaskedSignalsAreThoseOfTheProcessedLogits) {
  context_.parameters.logit_bias = {{1, 2.0f}};
  context_.stop_ids = {2};
  context_.mask_stop_ids_before = 5;
  SignalRequest request = kAllSignals;
  request.masked = true;
  const std::vector<double> processed = {0, 3, -kInfinity, 1};
  TR_ASSERT_OK_AND_ASSIGN(const Choice choice, Sample({0, 1, 9, 1}, 4, request));
  const ReferenceEvidence expected = ReferenceSignals(processed);
  EXPECT_EQ(choice.id, 1);
  EXPECT_NEAR(choice.signals.entropy, expected.entropy, 1e-5);
  EXPECT_NEAR(choice.signals.margin, expected.margin, 1e-6);
  EXPECT_THAT(choice.signals.top_logits,
              testing::ElementsAre(testing::Pair(1, 3), testing::Pair(3, 1), testing::Pair(0, 0)));
}

TEST_F(SamplerTest, StopIdsAreMaskedBelowTheMinimumOnly) {
  context_.stop_ids = {1};
  context_.mask_stop_ids_before = 10;
  TR_ASSERT_OK_AND_ASSIGN(const Choice before, Sample({0, 5, 1}, 9));
  EXPECT_EQ(before.id, 2);
  TR_ASSERT_OK_AND_ASSIGN(const Choice after, Sample({0, 5, 1}, 10));
  EXPECT_EQ(after.id, 1);
}

TEST_F(SamplerTest, PenaltiesFollowTheirDefinitions) {
  context_.generated_counts = {{0, 3}, {1, 1}};
  context_.parameters.frequency_penalty = 0.5f;
  context_.parameters.presence_penalty = 0.25f;
  context_.parameters.repetition_penalty = 2.0f;
  SignalRequest request{.top_logits = 3, .masked = true};
  TR_ASSERT_OK_AND_ASSIGN(const Choice choice, Sample({4, -1, 0.5}, 0, request));
  // 4 / 2 - 3 * 0.5 - 0.25 and -1 * 2 - 0.5 - 0.25.
  EXPECT_THAT(choice.signals.top_logits,
              testing::ElementsAre(testing::Pair(2, 0.5f), testing::Pair(0, 0.25f),
                                   testing::Pair(1, -2.75f)));
}

TEST_F(SamplerTest, BrokenLogitsAreAnInternalError) {
  for (const float broken : {kNan, kInfinity}) {
    for (const float temperature : {0.0f, 1.0f}) {
      context_.parameters.temperature = temperature;
      EXPECT_THAT(Sample({1, broken, 2}, 8),
                  StatusIs(absl::StatusCode::kInternal, testing::HasSubstr("position 8")));
    }
  }
  EXPECT_THAT(Sample({-kInfinity, -kInfinity}), StatusIs(absl::StatusCode::kInternal));
}

TEST_F(SamplerTest, MaskingEveryIdIsRefused) {
  context_.stop_ids = {0, 1};
  context_.mask_stop_ids_before = 1;
  EXPECT_THAT(Sample({1, 2}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(SamplerTest, IdsAtMinusInfinityAreNeverDrawn) {
  context_.parameters.temperature = 2.0f;
  for (Position position = 0; position < 2000; ++position) {
    TR_ASSERT_OK_AND_ASSIGN(const Choice choice,
                            Sample({-kInfinity, 0, -kInfinity, 0, -kInfinity}, position));
    ASSERT_EQ(choice.id % 2, 1);
  }
}

TEST_F(SamplerTest, DependsOnlyOnItsArguments) {
  context_.parameters = {.temperature = 1.0f, .top_p = 0.9f, .seed = 3};
  const std::vector<float> row = RandomRow(5000, 1);
  TR_ASSERT_OK_AND_ASSIGN(const Choice first, Sample(row, 5, kAllSignals));
  ASSERT_THAT(Sample(RandomRow(70, 2), 9), IsOk());
  TR_ASSERT_OK_AND_ASSIGN(const Choice again, Sample(row, 5, kAllSignals));
  EXPECT_EQ(first.id, again.id);
  EXPECT_EQ(first.logprob, again.logprob);
  EXPECT_EQ(first.signals.entropy, again.signals.entropy);
}

TEST_F(SamplerTest, SeedChoiceAndPositionMatter) {
  context_.parameters = {.temperature = 1.0f, .seed = 3};
  const std::vector<float> row(5000, 0.0f);
  TR_ASSERT_OK_AND_ASSIGN(const Choice base, Sample(row, 5));
  TR_ASSERT_OK_AND_ASSIGN(const Choice position, Sample(row, 6));
  context_.parameters.choice = 1;
  TR_ASSERT_OK_AND_ASSIGN(const Choice choice, Sample(row, 5));
  context_.parameters.seed = uint64_t{1} << 40;
  TR_ASSERT_OK_AND_ASSIGN(const Choice seed, Sample(row, 5));
  EXPECT_NE(base.id, position.id);
  EXPECT_NE(base.id, choice.id);
  EXPECT_NE(choice.id, seed.id);
}

TEST_F(SamplerTest, LaterChoicesCountTheIdsOfTheRow) {
  context_.parameters = {.temperature = 0.0f, .frequency_penalty = 1.0f};
  context_.generated_counts = {{0, 1}};
  const std::vector<TokenId> ids = {5, 1, 2};
  const StepRow row{.sequence = {1},
                    .first = 10,
                    .new_ids = ids,
                    .choices = 3,
                    .sampling = &context_,
                    .signals = {.top_logits = 4, .masked = true}};
  const std::vector<float> logits(3 * 6, 1.0f);
  std::vector<Choice> choices;
  ASSERT_THAT(SampleChoices(row, logits, 6, 4, &scratch_, &choices), IsOk());
  ASSERT_EQ(choices.size(), 3u);
  EXPECT_EQ(choices[0].id, 1);  // 0 is penalized; the row's first id is in the counts already.
  EXPECT_EQ(choices[1].id, 2);
  EXPECT_EQ(choices[2].id, 3);
}

TEST_F(SamplerTest, ChoicesOfARowAreThoseOfSingleCalls) {
  context_.parameters = {.temperature = 1.0f, .seed = 8};
  const std::vector<TokenId> ids = {5, 1, 2, 0};
  const std::vector<float> logits = RandomRow(2 * 300, 4);
  const StepRow row{.sequence = {1},
                    .first = 10,
                    .new_ids = ids,
                    .choices = 2,
                    .sampling = &context_,
                    .signals = {}};
  std::vector<Choice> choices;
  ASSERT_THAT(SampleChoices(row, logits, 300, 290, &scratch_, &choices), IsOk());
  for (int i = 0; i < 2; ++i) {
    TR_ASSERT_OK_AND_ASSIGN(const Choice single, SampleRow(std::span(logits).subspan(i * 300),
                                                           context_, 13 + i, {}, 290, &scratch_));
    EXPECT_EQ(choices[i].id, single.id);
    EXPECT_EQ(choices[i].logprob, single.logprob);
  }
}

}  // namespace
}  // namespace tokenrouter
