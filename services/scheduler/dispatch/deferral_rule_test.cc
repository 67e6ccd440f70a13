#include "services/scheduler/dispatch/deferral_rule.h"

#include <gtest/gtest.h>

#include <vector>

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;

constexpr absl::Duration kCap = absl::Seconds(1);
const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

TEST(DeferralRule, SaysWhatThePolicySays) {
  EXPECT_EQ(DeferralOf({.kind = Kind::kGreedy}, .1, kCap).ByteSizeLong(), 0u);
  EXPECT_EQ(DeferralOf({.kind = Kind::kLongestQueue}, .1, kCap).ByteSizeLong(), 0u);
  EXPECT_EQ(DeferralOf({.kind = Kind::kStatic, .m_small = 1}, .1, kCap).ByteSizeLong(), 0u)
      << "one ready row is always there";
  const wire::Deferral rows = DeferralOf({.kind = Kind::kStatic, .m_small = 3}, .1, kCap);
  EXPECT_EQ(rows.least_rows(), 3);
  EXPECT_EQ(rows.cap_us(), 1'000'000);
  EXPECT_EQ(DeferralOf({.kind = Kind::kFixedWait, .wait_small_ms = 1.5}, .1, kCap).wait_us(), 1500);
  const wire::Deferral balance = DeferralOf({.kind = Kind::kModel, .step_small_ms = 3.5}, .1, kCap);
  EXPECT_TRUE(balance.delay_balance());
  EXPECT_EQ(balance.mean_step_us(), 3500);
  EXPECT_EQ(balance.step_spread(), .1);
}

TEST(DeferralRule, IsSentAgainOnlyWhenItChanged) {
  const wire::Deferral sent = DeferralOf({.kind = Kind::kModel, .step_small_ms = 3.5}, .1, kCap);
  EXPECT_FALSE(
      DeferralDiffers(sent, DeferralOf({.kind = Kind::kModel, .step_small_ms = 3.5}, .12, kCap)));
  EXPECT_TRUE(
      DeferralDiffers(sent, DeferralOf({.kind = Kind::kModel, .step_small_ms = 3.5}, .2, kCap)));
  EXPECT_TRUE(
      DeferralDiffers(sent, DeferralOf({.kind = Kind::kModel, .step_small_ms = 3}, .1, kCap)));
  EXPECT_TRUE(DeferralDiffers(sent, {}));
}

TEST(RelevantStep, EndsSoonestAmongThoseWithRowsFromThisWorker) {
  const auto step = [](double started_ms_ago, double predicted_ms, int rows_from_here) {
    return LargeStep{{.since = kNow - absl::Milliseconds(started_ms_ago),
                      .rows = 4,
                      .predicted = absl::Milliseconds(predicted_ms)},
                     rows_from_here};
  };
  EXPECT_FALSE(RelevantStep({}).has_value());
  const std::vector<LargeStep> steps = {step(1, 20, 2), step(5, 20, 3), step(15, 20, 0),
                                        step(15, 0, 4)};
  EXPECT_EQ(RelevantStep(steps)->rows_from_here, 3);
}

}  // namespace
}  // namespace tokenrouter
