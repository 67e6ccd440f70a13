#include "libs/sampling/row_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "libs/tokens/keyed_random.h"

namespace tokenrouter {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> RandomRow(int64_t ids, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, 5.0f);
  std::vector<float> row(ids);
  for (float& x : row) x = random() % 20 == 0 ? -kInfinity : normal(random);
  row[random() % ids] = 3.0f;
  return row;
}

class RowKernelsTest : public testing::TestWithParam<const RowKernels*> {
 protected:
  const RowKernels& kernels() const { return *GetParam(); }
};

TEST_P(RowKernelsTest, FindsTheMaximumOfEveryBlock) {
  for (const int64_t ids : {1, 15, 63, 64, 65, 128, 1000}) {
    const std::vector<float> row = RandomRow(ids, ids);
    std::vector<float> maxima(RowBlocks(ids), 77.0f);
    kernels().block_maxima(row.data(), ids, maxima.data());
    for (int64_t b = 0; b < RowBlocks(ids); ++b) {
      float expected = -kInfinity;
      for (int64_t i = b * kRowBlock; i < std::min(ids, (b + 1) * kRowBlock); ++i) {
        expected = std::max(expected, row[i]);
      }
      EXPECT_EQ(maxima[b], expected) << ids << " ids, block " << b;
    }
  }
}

TEST_P(RowKernelsTest, SumsAreThoseOfADoubleLoop) {
  for (const int64_t ids : {1, 63, 64, 65, 1000, 50000}) {
    const std::vector<float> row = RandomRow(ids, ids + 1);
    for (const float scale : {1.0f, 0.5f, 20.0f}) {
      double sum = 0, weighted = 0;
      for (const float x : row) {
        const double t = (double{x} - 20.0) * scale;
        if (t < -80) continue;
        sum += std::exp(t);
        weighted += std::exp(t) * t;
      }
      const ExpSums sums = kernels().exp_sums(row.data(), ids, 20.0f, scale);
      const double floor = 1e-30;  // Where values below exp(-87) count as exp(-87).
      EXPECT_NEAR(sums.sum, sum, 1e-5 * sum + floor) << ids << " ids, scale " << scale;
      EXPECT_NEAR(sums.weighted, weighted, 1e-5 * std::abs(weighted) + floor);
    }
  }
}

TEST_P(RowKernelsTest, NanAndPlusInfinityReachTheSum) {
  std::vector<float> row = RandomRow(300, 3);
  for (const size_t at : {0, 100, 299}) {
    std::vector<float> broken = row;
    broken[at] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(kernels().exp_sums(broken.data(), 300, 9.0f, 1.0f).sum));
  }
  row[7] = kInfinity;
  EXPECT_TRUE(std::isnan(kernels().exp_sums(row.data(), 300, kInfinity, 1.0f).sum));
}

TEST_P(RowKernelsTest, NoiseCandidatesMissNoWinner) {
  const RandomKey key{.seed = 0x123456789abcdef, .choice = 3, .position = 77};
  const NoiseKey words{0x89abcdef, 0x1234567, 77, 3, 0};
  int64_t winners = 0, candidates = 0;
  for (uint32_t block = 0; block < 400; ++block) {
    std::vector<float> row = RandomRow(kRowBlock, block + 1000);
    const double best_score = 4.0 - 0.02 * block;
    const NoiseBound bound{3.0f, 0.7f, -4.0f, static_cast<float>(std::exp(-best_score) * 1.001)};
    const uint64_t mask = kernels().noise_candidates(row.data(), block, words, bound);
    for (int i = 0; i < kRowBlock; ++i) {
      const double noise = KeyedGumbel(key, static_cast<TokenId>(block * kRowBlock + i));
      const bool wins = row[i] >= -4.0f && (double{row[i]} - 3.0) * 0.7 + noise >= best_score;
      winners += wins;
      candidates += mask >> i & 1;
      EXPECT_LE(wins, (mask >> i & 1) != 0) << "block " << block << " id " << i;
    }
  }
  EXPECT_GT(winners, 100);
  EXPECT_LT(candidates, 4 * winners) << "the bound is too loose to be of use";
}

INSTANTIATE_TEST_SUITE_P(Processor, RowKernelsTest, testing::ValuesIn(SupportedRowKernels()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace tokenrouter
