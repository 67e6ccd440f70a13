#include "libs/batching_model/binomial.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

TEST(BinomialTest, SumsToOneWithTheRightMean) {
  for (const int n : {0, 1, 7, 512, 4096}) {
    for (const double p : {0.02, 0.5, 0.9, 1.0}) {
      double sum = 0, mean = 0;
      const std::vector<double> mass = BinomialMass(n, p);
      for (int j = 0; j <= n; ++j) sum += mass[j], mean += j * mass[j];
      EXPECT_NEAR(sum, 1, 1e-9) << n << " " << p;
      EXPECT_NEAR(mean, n * p, 1e-6) << n << " " << p;
    }
  }
}

TEST(BinomialTest, MatchesSmallCases) {
  const std::vector<double> mass = BinomialMass(3, 0.2);
  EXPECT_NEAR(mass[0], .512, 1e-12);
  EXPECT_NEAR(mass[1], .384, 1e-12);
  EXPECT_NEAR(mass[2], .096, 1e-12);
  EXPECT_NEAR(mass[3], .008, 1e-12);
}

}  // namespace
}  // namespace tokenrouter
