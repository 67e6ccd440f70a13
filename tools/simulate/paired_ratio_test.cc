#include "tools/simulate/paired_ratio.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

TEST(PairedRatioTest, MeanAndIntervalOfThePairs) {
  PairedRatio ratio;
  for (const double value : {1.0, 1.1, 1.2, 1.1}) ratio.Add(2 * value, 2);
  EXPECT_NEAR(ratio.Mean(), 1.1, 1e-12);
  EXPECT_NEAR(ratio.Error(), 0.0408, 1e-3);  // .0816 / 2.
  EXPECT_NEAR(ratio.HalfWidth95(), 3.182 * ratio.Error(), 1e-12);
  EXPECT_NEAR(ratio.MeanNumerator(), 2.2, 1e-12);
  EXPECT_EQ(ratio.MeanDenominator(), 2);
}

TEST(PairedRatioTest, OnePairSaysNothingAboutItsError) {
  PairedRatio ratio;
  ratio.Add(1, 2);
  EXPECT_EQ(ratio.Mean(), 0.5);
  EXPECT_EQ(ratio.HalfWidth95(), INFINITY);
}

}  // namespace
}  // namespace tokenrouter
