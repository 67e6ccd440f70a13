// With all filters, the draws of many positions must have the distribution of a slow reference
// (chi-square), and each single draw must be the reference's own Gumbel-max.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "libs/sampling/sampler.h"
#include "libs/sampling/sampler_reference.h"
#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

constexpr int32_t kIds = 200;
constexpr int kDraws = 20000;

std::vector<float> Row(int64_t ids, float spread, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> row(ids);
  for (float& x : row) x = normal(random);
  return row;
}

// Pools cells of fewer than 10 expected draws; returns the statistic in standard deviations above
// its mean.
double ChiSquareExcess(const std::vector<int>& counts, const std::vector<double>& probability) {
  double statistic = 0, rest_expected = 0, rest_seen = 0;
  int cells = 0;
  const auto add = [&](double seen, double expected) {
    statistic += (seen - expected) * (seen - expected) / expected;
    ++cells;
  };
  for (size_t id = 0; id < counts.size(); ++id) {
    const double expected = probability[id] * kDraws;
    if (expected >= 10) {
      add(counts[id], expected);
    } else {
      rest_expected += expected;
      rest_seen += counts[id];
    }
  }
  if (rest_expected >= 1) add(rest_seen, rest_expected);
  const double freedom = std::max(1, cells - 1);
  return (statistic - freedom) / std::sqrt(2 * freedom);
}

struct Case {
  std::string name;
  SamplingParameters parameters;
  bool penalties = false;
  bool mask = false;
};

class SamplerDistributionTest : public testing::TestWithParam<Case> {};

TEST_P(SamplerDistributionTest, MatchesTheReference) {
  const std::vector<float> row = Row(kIds, 2.0f, 5);
  SamplingContext context{.parameters = GetParam().parameters};
  context.parameters.seed = 4711;
  if (GetParam().penalties) context.generated_counts = {{3, 2}, {50, 1}, {120, 7}, {121, 1}};
  context.stop_ids = {0, 1, 2};
  if (GetParam().mask) context.mask_stop_ids_before = kDraws + 1;
  const ReferenceRow reference = ReferenceFilter(row, context, 0);
  ASSERT_FALSE(reference.ambiguous);
  SamplerScratch scratch;
  std::vector<int> counts(kIds, 0);
  for (Position position = 0; position < kDraws; ++position) {
    TR_ASSERT_OK_AND_ASSIGN(const Choice choice,
                            SampleRow(row, context, position, {}, kIds, &scratch));
    ASSERT_GT(reference.probability[choice.id], 0.0) << "id " << choice.id << " is filtered out";
    ++counts[choice.id];
    if (position < 500) {
      ASSERT_EQ(choice.id, ReferenceDraw(reference, context.parameters, position));
    }
  }
  EXPECT_LT(ChiSquareExcess(counts, reference.probability), 5.0);
}

INSTANTIATE_TEST_SUITE_P(
    Filters, SamplerDistributionTest,
    testing::Values(Case{"Plain", {}}, Case{"Cold", {.temperature = 0.3f}},
                    Case{"Hot", {.temperature = 2.0f}}, Case{"TopK", {.top_k = 7}},
                    Case{"TopP", {.top_p = 0.8f}}, Case{"MinP", {.min_p = 0.1f}},
                    Case{"All", {.temperature = 1.3f, .top_k = 50, .top_p = 0.9f, .min_p = 0.05f}},
                    Case{"Bias", {.logit_bias = {{4, 3.0f}, {9, -100.0f}}}},
                    Case{"Frequency", {.frequency_penalty = 0.7f}, true},
                    Case{"Presence", {.presence_penalty = -1.5f}, true},
                    Case{"Repetition", {.repetition_penalty = 1.8f}, true},
                    Case{"Mask", {.temperature = 1.5f}, false, true}),
    [](const auto& info) { return info.param.name; });

TEST(SamplerPropertyTest, EveryDrawIsTheGumbelMaxOfTheReference) {
  std::mt19937_64 random(99);
  SamplerScratch scratch;
  int compared = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const int64_t ids = 1 + static_cast<int64_t>(random() % (trial % 20 == 0 ? 20000 : 500));
    const std::vector<float> row = Row(ids, 0.1f + static_cast<float>(random() % 5), trial);
    SamplingContext context;
    SamplingParameters& p = context.parameters;
    p.seed = random();
    p.choice = static_cast<uint32_t>(random() % 3);
    p.temperature = 0.05f + static_cast<float>(random() % 100) / 50.0f;
    if (random() % 3 == 0) p.top_k = 1 + static_cast<int32_t>(random() % ids);
    if (random() % 3 == 0) p.top_p = 0.01f + static_cast<float>(random() % 99) / 100.0f;
    if (random() % 3 == 0) p.min_p = static_cast<float>(random() % 100) / 100.0f;
    if (random() % 3 == 0) {
      p.repetition_penalty = 1.3f;
      p.frequency_penalty = 0.4f;
      for (int i = 0; i < 20; ++i) ++context.generated_counts[static_cast<TokenId>(random() % ids)];
    }
    const auto position = static_cast<Position>(random() % 100000);
    const ReferenceRow reference = ReferenceFilter(row, context, position);
    if (reference.ambiguous) continue;
    ++compared;
    TR_ASSERT_OK_AND_ASSIGN(const Choice choice, SampleRow(row, context, position, {},
                                                           static_cast<int32_t>(ids), &scratch));
    ASSERT_EQ(choice.id, ReferenceDraw(reference, p, position)) << "trial " << trial;
  }
  EXPECT_GT(compared, 1300);
}

}  // namespace
}  // namespace tokenrouter
