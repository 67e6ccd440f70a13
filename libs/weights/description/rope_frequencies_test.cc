// Expected values come from the published formulas, computed once with another program.
#include "libs/weights/description/rope_frequencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tokenrouter {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

RopeDescription Rope(RopeScaling scaling, double factor) {
  RopeDescription rope;
  rope.theta = 10000;
  rope.dim = 8;
  rope.scaling = scaling;
  rope.factor = factor;
  return rope;
}

auto Near(double value) { return DoubleNear(value, 1e-6 * value); }

TEST(RopeFrequenciesTest, FallsGeometricallyWithoutScaling) {
  EXPECT_THAT(RopeFrequencies(Rope(RopeScaling::kNone, 1)),
              ElementsAre(Near(1), Near(0.1), Near(0.01), Near(0.001)));
}

TEST(RopeFrequenciesTest, DividesEveryFrequencyWhenLinear) {
  EXPECT_THAT(RopeFrequencies(Rope(RopeScaling::kLinear, 4)),
              ElementsAre(Near(0.25), Near(0.025), Near(0.0025), Near(0.00025)));
}

TEST(RopeFrequenciesTest, StretchesOnlyLongWavesForLlama3) {
  RopeDescription rope = Rope(RopeScaling::kLlama3, 8);
  rope.original_context = 1024;
  // Waves of 6.28, 62.8, 628 and 6283 tokens; kept below 256, stretched above 1024.
  const double smooth = (1024 / (2 * M_PI / 0.01) - 1) / 3;
  EXPECT_THAT(RopeFrequencies(rope),
              ElementsAre(Near(1), Near(0.1), Near((1 - smooth) * 0.01 / 8 + smooth * 0.01),
                          Near(0.001 / 8)));
}

TEST(RopeFrequenciesTest, RampsBetweenKeptAndStretchedForYarn) {
  RopeDescription rope = Rope(RopeScaling::kYarn, 4);
  rope.original_context = 4096;
  EXPECT_THAT(RopeFrequencies(rope), ElementsAre(Near(1), Near(0.1), Near(0.00625), Near(0.00025)));
  EXPECT_NEAR(RopeAttentionFactor(rope), 0.1 * std::log(4.0) + 1, 1e-12);
  EXPECT_EQ(StretchedContext(rope), 4 * 4096);
  rope.attention_factor = 1.25;
  EXPECT_EQ(RopeAttentionFactor(rope), 1.25);
}

TEST(RopeFrequenciesTest, AYarnRampWithoutLengthKeepsTheFirstPairOnly) {
  RopeDescription rope = Rope(RopeScaling::kYarn, 4);
  rope.original_context = 6;  // The fastest wave does not rotate once within it.
  EXPECT_THAT(RopeFrequencies(rope),
              ElementsAre(Near(1), Near(0.025), Near(0.0025), Near(0.00025)));
}

TEST(RopeFrequenciesTest, DividesByTheFactorsOfTheFile) {
  RopeDescription rope = Rope(RopeScaling::kNone, 1);
  rope.divisors = {1, 2, 4, 8};
  EXPECT_THAT(RopeFrequencies(rope),
              ElementsAre(Near(1), Near(0.05), Near(0.0025), Near(0.000125)));
}

TEST(RopeFrequenciesTest, LeavesAttentionAloneOutsideYarn) {
  EXPECT_EQ(RopeAttentionFactor(Rope(RopeScaling::kLinear, 4)), 1);
}

}  // namespace
}  // namespace tokenrouter
