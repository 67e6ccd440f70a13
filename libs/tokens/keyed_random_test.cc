#include "libs/tokens/keyed_random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace tokenrouter {
namespace {

TEST(KeyedRandomTest, IsAPureFunctionOfItsKey) {
  const RandomKey key{.seed = 7, .choice = 1, .position = 12, .purpose = Purpose::kRouter};
  EXPECT_EQ(KeyedUniform(key, 3), KeyedUniform(key, 3));
  std::set<double> values;
  values.insert(KeyedUniform(key, 3));
  values.insert(KeyedUniform(key, 4));
  for (RandomKey other :
       {RandomKey{8, 1, 12, Purpose::kRouter}, RandomKey{7, 2, 12, Purpose::kRouter},
        RandomKey{7, 1, 13, Purpose::kRouter}, RandomKey{7, 1, 12, Purpose::kToken},
        RandomKey{7 + (uint64_t{1} << 32), 1, 12, Purpose::kRouter}}) {
    values.insert(KeyedUniform(other, 3));
  }
  EXPECT_EQ(values.size(), 7u) << "every field of the key must matter";
}

TEST(KeyedRandomTest, NeighbouringIndicesAreIndependentDraws) {
  std::set<double> values;
  double product = 0;
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) {
    const double a = KeyedUniform({.seed = 5, .position = 3}, i);
    const double b = KeyedUniform({.seed = 5, .position = 3}, i + 1);
    values.insert(a);
    product += (a - 0.5) * (b - 0.5);
  }
  EXPECT_GT(values.size(), kDraws - 5u);
  EXPECT_NEAR(product / kDraws, 0.0, 5 / 12.0 / 200);
}

TEST(KeyedRandomTest, UniformHasTheMomentsOfAUniform) {
  double sum = 0, squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = KeyedUniform({.seed = 1, .position = i});
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3.0, 0.005);
}

TEST(KeyedRandomTest, GumbelMaxSamplesTheDistribution) {
  const std::vector<double> p = {0.5, 0.3, 0.15, 0.05};
  std::vector<int> counts(p.size(), 0);
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) {
    int best = 0;
    double best_score = -1e30;
    for (size_t id = 0; id < p.size(); ++id) {
      const double score =
          std::log(p[id]) + KeyedGumbel({.seed = 99, .position = i}, static_cast<TokenId>(id));
      if (score > best_score) best_score = score, best = static_cast<int>(id);
    }
    ++counts[best];
  }
  for (size_t id = 0; id < p.size(); ++id) {
    const double sigma = std::sqrt(p[id] * (1 - p[id]) / kDraws);
    EXPECT_NEAR(static_cast<double>(counts[id]) / kDraws, p[id], 5 * sigma);
  }
}

}  // namespace
}  // namespace tokenrouter
