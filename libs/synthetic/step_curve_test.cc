#include "libs/synthetic/step_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(StepCurveTest, NamedSetsHaveACurvePerRole) {
  TR_ASSERT_OK_AND_ASSIGN(const StepCurve small, StepCurve::Parse("h200", Role::kSmall));
  TR_ASSERT_OK_AND_ASSIGN(const StepCurve large, StepCurve::Parse("h200", Role::kLarge));
  EXPECT_EQ(small.Mean(64, 64), absl::Milliseconds(3.64));
  EXPECT_EQ(large.Mean(10, 100), absl::Milliseconds(15 + 0.2 + 12.8));
}

TEST(StepCurveTest, RooflineIsTheLargerOfBoth) {
  TR_ASSERT_OK_AND_ASSIGN(const StepCurve small, StepCurve::Parse("roofline", Role::kSmall));
  EXPECT_EQ(small.Mean(16, 16), absl::Milliseconds(6));
  EXPECT_EQ(small.Mean(128, 128), absl::Milliseconds(12));
}

TEST(StepCurveTest, ReadsExplicitNumbersAndOverrides) {
  TR_ASSERT_OK_AND_ASSIGN(const StepCurve explicit_curve,
                          StepCurve::Parse("base=2,row=0.5,id=0.25,cv=0.1", Role::kSmall));
  EXPECT_EQ(explicit_curve, (StepCurve{2, 0.5, 0.25, false, 0.1}));
  TR_ASSERT_OK_AND_ASSIGN(const StepCurve named, StepCurve::Parse("8b,cv=0.03", Role::kLarge));
  EXPECT_EQ(named, (StepCurve{5, 0.01, 0.032, false, 0.03}));
}

TEST(StepCurveTest, TextFormReadsBack) {
  for (const char* text : {"h200,cv=0.05", "roofline", "base=1,id=0.5", "instant"}) {
    TR_ASSERT_OK_AND_ASSIGN(const StepCurve curve, StepCurve::Parse(text, Role::kLarge));
    TR_ASSERT_OK_AND_ASSIGN(const StepCurve again,
                            StepCurve::Parse(curve.ToString(), Role::kLarge));
    EXPECT_EQ(curve, again) << text;
  }
}

TEST(StepCurveTest, ErrorsNameTheItemAndWhatIsAllowed) {
  for (const char* text : {"h100", "", "base=-1", "base=x", "cv=2", "base=nan", "speed=1"}) {
    EXPECT_THAT(StepCurve::Parse(text, Role::kSmall),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(text), HasSubstr("h200"), HasSubstr("base=MS"))));
  }
}

TEST(StepCurveTest, NoiseHasItsMeanAndVariationAndRepeats) {
  const StepCurve curve{.base_ms = 10, .noise = 0.1};
  double sum = 0, squares = 0;
  constexpr int kSteps = 20000;
  for (int step = 0; step < kSteps; ++step) {
    const double ms = absl::ToDoubleMilliseconds(curve.Draw(1, 1, 7, step));
    EXPECT_GE(ms, 2.0);
    sum += ms;
    squares += ms * ms;
  }
  const double mean = sum / kSteps;
  EXPECT_NEAR(mean, 10.0, 0.05);
  EXPECT_NEAR(std::sqrt(squares / kSteps - mean * mean), 1.0, 0.05);
  EXPECT_EQ(curve.Draw(1, 1, 7, 3), curve.Draw(1, 1, 7, 3));
  EXPECT_NE(curve.Draw(1, 1, 7, 3), curve.Draw(1, 1, 8, 3));
}

}  // namespace
}  // namespace tokenrouter
