#include "libs/sampling/token_filter.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "libs/sampling/sampler_reference.h"

namespace tokenrouter {
namespace {

std::vector<TokenId> Kept(const std::vector<float>& row, const SamplingParameters& parameters) {
  RowScan scan;
  scan.Read(row);
  TokenFilter filter;
  const FilterCut cut = filter.Cut(parameters, &scan);
  std::vector<TokenId> kept;
  for (size_t id = 0; id < row.size(); ++id) {
    if (cut.Keeps(static_cast<TokenId>(id), row[id])) kept.push_back(static_cast<TokenId>(id));
  }
  return kept;
}

using Ids = std::vector<TokenId>;

TEST(TokenFilterTest, TopKKeepsExactlyKAndTheLowestIdsOfTies) {
  EXPECT_EQ(Kept({1, 5, 5, 5, 0}, {.top_k = 2}), (Ids{1, 2}));
  EXPECT_EQ(Kept({1, 5, 5, 5, 0}, {.top_k = 4}), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(Kept({1, 5, 5, 5, 0}, {.top_k = 9}), (Ids{0, 1, 2, 3, 4}));
}

TEST(TokenFilterTest, TopPKeepsTheIdThatCrosses) {
  const std::vector<float> row = {std::log(0.1f), std::log(0.6f), std::log(0.3f)};
  EXPECT_EQ(Kept(row, {.top_p = 0.5f}), (Ids{1}));
  EXPECT_EQ(Kept(row, {.top_p = 0.7f}), (Ids{1, 2}));
  EXPECT_EQ(Kept(row, {.top_p = 0.95f}), (Ids{0, 1, 2}));
  EXPECT_EQ(Kept(row, {.top_p = 1e-9f}), (Ids{1}));
}

TEST(TokenFilterTest, TopPCountsTiesByLowestId) {
  EXPECT_EQ(Kept({2, 2, 2, 2}, {.top_p = 0.6f}), (Ids{0, 1, 2}));
}

TEST(TokenFilterTest, TopPCountsWhatTopKLeaves) {
  const std::vector<float> row = {std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  // Of the two that remain the first has 4/7.
  EXPECT_EQ(Kept(row, {.top_k = 2, .top_p = 0.55f}), (Ids{0}));
  EXPECT_EQ(Kept(row, {.top_k = 0, .top_p = 0.55f}), (Ids{0, 1}));
}

TEST(TokenFilterTest, MinPIsRelativeToTheMostLikely) {
  const std::vector<float> row = {std::log(0.6f), std::log(0.29f), std::log(0.31f)};
  EXPECT_EQ(Kept(row, {.min_p = 0.5f}), (Ids{0, 2}));
  EXPECT_EQ(Kept({3, 3, 2}, {.min_p = 1.0f}), (Ids{0, 1}));
}

TEST(TokenFilterTest, AgreesWithASortOfAllIds) {
  std::mt19937_64 random(11);
  int compared = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const int64_t ids = 1 + static_cast<int64_t>(random() % (trial % 10 == 0 ? 9000 : 300));
    std::normal_distribution<float> normal(0.0f, 0.5f + static_cast<float>(random() % 6));
    std::vector<float> row(ids);
    const bool tied = random() % 2 == 0;
    for (float& x : row) x = tied ? std::round(normal(random)) : normal(random);
    SamplingContext context;
    SamplingParameters& p = context.parameters;
    p.temperature = 0.2f + static_cast<float>(random() % 100) / 50.0f;
    if (random() % 2 == 0) p.top_k = 1 + static_cast<int32_t>(random() % ids);
    if (random() % 2 == 0) p.top_p = 0.01f + static_cast<float>(random() % 99) / 100.0f;
    if (random() % 2 == 0) p.min_p = static_cast<float>(random() % 100) / 100.0f;
    const ReferenceRow reference = ReferenceFilter(row, context, 0);
    if (reference.ambiguous) continue;
    Ids expected;
    for (TokenId id = 0; id < ids; ++id) {
      if (reference.probability[id] > 0) expected.push_back(id);
    }
    ++compared;
    ASSERT_EQ(Kept(row, p), expected)
        << "trial " << trial << " temperature " << p.temperature << " top_k " << p.top_k
        << " top_p " << p.top_p << " min_p " << p.min_p;
  }
  EXPECT_GT(compared, 1200);
}

}  // namespace
}  // namespace tokenrouter
