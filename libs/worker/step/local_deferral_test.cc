#include "libs/worker/step/local_deferral.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tokenrouter {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

// A small side whose steps take base + per_row x rows milliseconds.
LocalDeferral SideOf(double base_ms, double row_ms, int max_rows = 64) {
  LocalDeferral side(max_rows);
  for (int round = 0; round < 20; ++round) {
    for (const int rows : {1, 2, 4, 8, 16}) {
      side.Observe(rows, rows, absl::Milliseconds(base_ms + row_ms * rows));
    }
  }
  return side;
}

wire::Deferral Balance(double spread = 0, double mean_step_ms = 0) {
  wire::Deferral deferral;
  deferral.set_delay_balance(true);
  deferral.set_mean_step_us(static_cast<int64_t>(1000 * mean_step_ms));
  deferral.set_step_spread(spread);
  deferral.set_cap_us(500'000);
  return deferral;
}

wire::PeerStep StepOf(double predicted_ms, int returns, double elapsed_ms = 0) {
  wire::PeerStep step;
  step.set_batch(std::max(1, returns));
  step.set_expected_returns(returns);
  step.set_predicted_us(static_cast<int64_t>(predicted_ms * 1000));
  step.set_elapsed_us(static_cast<int64_t>(elapsed_ms * 1000));
  return step;
}

ReadyRows Rows(int rows, absl::Time since = kStart) {
  return {.rows = rows, .new_ids = rows, .oldest_since = since};
}

double WaitMs(const LocalDeferral::Decision& decision) {
  return decision.wait() ? absl::ToDoubleMilliseconds(decision.wait_until - kStart) : 0;
}

// tau* where the plan knows no mean step. A wait begins just below it and not above, and lasts
// until the step is overdue.
TEST(LocalDeferralTest, WaitsBelowTheThresholdsOfTheModelsVectors) {
  const struct {
    double base_ms, row_ms;
    int rows, arrivals;
    double threshold;
  } kVectors[] = {{6, 0.02, 1, 1, 2.99}, {6, 0.02, 2, 4, 3.97}, {25, 4, 1, 1, 10.5}};
  for (const auto& vector : kVectors) {
    for (const double remaining : {vector.threshold - 0.05, vector.threshold + 0.05}) {
      LocalDeferral side = SideOf(vector.base_ms, vector.row_ms);
      side.SetDeferral(Balance());
      side.SetPeerStep(StepOf(60, vector.arrivals, 60 - remaining), kStart);
      const LocalDeferral::Decision decision = side.Decide(Rows(vector.rows), kStart);
      ASSERT_EQ(decision.wait(), remaining < vector.threshold) << vector.threshold;
      if (!decision.wait()) continue;
      EXPECT_NEAR(WaitMs(decision), remaining + 60 * 0.06, 0.02);
    }
  }
}

TEST(LocalDeferralTest, NothingWaitsBeforeTheSchedulerSpokeNorWhileTheOtherSideIsIdle) {
  LocalDeferral side = SideOf(6, 0.02);
  EXPECT_FALSE(side.Decide(Rows(1), kStart).wait());
  side.SetDeferral(Balance());
  EXPECT_FALSE(side.Decide(Rows(1), kStart).wait());
  side.SetPeerStep(StepOf(2, 1), kStart);
  EXPECT_TRUE(side.Decide(Rows(1), kStart).wait());
  side.SetPeerStep(wire::PeerStep(), kStart);
  const LocalDeferral::Decision decision = side.Decide(Rows(1), kStart);
  EXPECT_FALSE(decision.wait());
  EXPECT_EQ(decision.outcome, WaitOutcome::kIdle);
}

TEST(LocalDeferralTest, NothingWaitsWhileItsOwnStepsAreUnknown) {
  LocalDeferral side(64);
  side.SetDeferral(Balance());
  side.SetPeerStep(StepOf(2, 4), kStart);
  EXPECT_EQ(side.Decide(Rows(1), kStart).outcome, WaitOutcome::kImmediate);
}

TEST(LocalDeferralTest, AMessageAboutTheSameStepMovesTheEndOfTheWait) {
  LocalDeferral side = SideOf(6, 0.02);
  side.SetDeferral(Balance(/*spread=*/0.5));
  side.SetPeerStep(StepOf(1.5, 1), kStart);
  EXPECT_NEAR(WaitMs(side.Decide(Rows(1), kStart)), 1.5 * 2.5, 1e-3);
  const absl::Time later = kStart + absl::Milliseconds(1.5);
  side.SetPeerStep(StepOf(2.5, 1, 1.5), later);
  const absl::Time end = side.Decide(Rows(1), later).wait_until;
  EXPECT_NEAR(absl::ToDoubleMilliseconds(end - kStart), 2.5 * 2.5, 1e-3);
  const LocalDeferral::Decision over = side.Decide(Rows(1), end);
  EXPECT_FALSE(over.wait());
  EXPECT_EQ(over.outcome, WaitOutcome::kTimer);
}

// By hand: one row and one arrival: half of the mean step, less what one row adds.
TEST(LocalDeferralTest, AnArrivingRowSavesTheMeanStepOfThePlan) {
  for (const double remaining : {3.9, 4.1}) {
    LocalDeferral side = SideOf(6, 0.02);
    side.SetDeferral(Balance(0, /*mean_step_ms=*/8.04));
    side.SetPeerStep(StepOf(60, 1, 60 - remaining), kStart);
    EXPECT_EQ(side.Decide(Rows(1), kStart).wait(), remaining < 4);
  }
}

TEST(LocalDeferralTest, RowsThatCameAreNoLongerAwaited) {
  LocalDeferral side = SideOf(6, 0.02);
  side.SetDeferral(Balance(0.2));
  side.SetPeerStep(StepOf(2, 2), kStart);
  ASSERT_TRUE(side.Decide(Rows(1), kStart).wait());
  side.CountArrivals(1);
  EXPECT_TRUE(side.Decide(Rows(2), kStart + absl::Milliseconds(1)).wait());
  side.CountArrivals(1);
  const LocalDeferral::Decision decision = side.Decide(Rows(3), kStart + absl::Milliseconds(1));
  EXPECT_FALSE(decision.wait());
  EXPECT_EQ(decision.outcome, WaitOutcome::kBalance);
}

TEST(LocalDeferralTest, AnOverdueStepHoldsNothing) {
  for (const double spread : {0.0, 0.1}) {
    wire::Deferral deferral;
    deferral.set_least_rows(8);
    deferral.set_step_spread(spread);
    deferral.set_cap_us(500'000);
    LocalDeferral side = SideOf(6, 0.02);
    side.SetDeferral(deferral);
    side.SetPeerStep(StepOf(10, 4, 2), kStart);
    const double overdue = 10 * (1 + 3 * std::max(spread, 0.02)) - 2;
    const LocalDeferral::Decision decision = side.Decide(Rows(1), kStart);
    EXPECT_NEAR(WaitMs(decision), overdue, 1e-6);
    EXPECT_EQ(side.Decide(Rows(1), decision.wait_until).outcome, WaitOutcome::kTimer);
    EXPECT_FALSE(side.Decide(Rows(1), decision.wait_until + absl::Hours(1)).wait());
  }
}

TEST(LocalDeferralTest, EveryRuleThatIsSetReleases) {
  wire::Deferral deferral;
  deferral.set_least_rows(3);
  deferral.set_wait_us(4000);
  deferral.set_cap_us(500'000);
  LocalDeferral side = SideOf(6, 0.02);
  side.SetDeferral(deferral);
  side.SetPeerStep(StepOf(100, 4), kStart);
  EXPECT_NEAR(WaitMs(side.Decide(Rows(1), kStart)), 4, 1e-6);
  EXPECT_EQ(side.Decide(Rows(3), kStart).outcome, WaitOutcome::kSize);
  ASSERT_TRUE(side.Decide(Rows(1), kStart).wait());
  EXPECT_EQ(side.Decide(Rows(1), kStart + absl::Milliseconds(4)).outcome, WaitOutcome::kTimer);
}

TEST(LocalDeferralTest, TheCapAndTheBoundsOfRequestsEndEveryWait) {
  wire::Deferral deferral;
  deferral.set_least_rows(30);
  deferral.set_cap_us(3000);
  LocalDeferral side = SideOf(6, 0.02);
  side.SetDeferral(deferral);
  side.SetPeerStep(StepOf(100, 4), kStart);
  EXPECT_NEAR(WaitMs(side.Decide(Rows(1), kStart)), 3, 1e-6);
  EXPECT_EQ(side.Decide(Rows(1), kStart + absl::Milliseconds(3)).outcome, WaitOutcome::kBound);
  ReadyRows bounded = Rows(1);
  bounded.launch_by = kStart + absl::Milliseconds(1);
  EXPECT_NEAR(WaitMs(side.Decide(bounded, kStart)), 1, 1e-6);
  deferral.set_cap_us(std::numeric_limits<int64_t>::max());
  wire::PeerStep endless = StepOf(0, 4);
  endless.set_predicted_us(std::numeric_limits<int64_t>::max());
  side.SetDeferral(deferral);
  side.SetPeerStep(endless, kStart);
  EXPECT_EQ(side.Decide(Rows(1), kStart).wait_until, kStart + kLongestDeferral);
}

TEST(LocalDeferralTest, FullStepsAndPromptsNeverWait) {
  LocalDeferral side = SideOf(6, 0.02, /*max_rows=*/4);
  wire::Deferral deferral;
  deferral.set_least_rows(30);
  deferral.set_cap_us(3000);
  side.SetDeferral(deferral);
  side.SetPeerStep(StepOf(100, 4), kStart);
  ASSERT_TRUE(side.Decide(Rows(3), kStart).wait());
  EXPECT_EQ(side.Decide(Rows(4), kStart).outcome, WaitOutcome::kSize);
  ReadyRows prompt = Rows(1);
  prompt.may_wait = false;
  EXPECT_FALSE(side.Decide(prompt, kStart).wait());
}

TEST(LocalDeferralTest, NumbersWithoutSenseAreNotSet) {
  LocalDeferral side = SideOf(6, 0.02);
  wire::Deferral deferral = Balance(std::numeric_limits<double>::quiet_NaN());
  deferral.set_mean_step_us(std::numeric_limits<int64_t>::min());
  side.SetDeferral(deferral);
  wire::PeerStep step = StepOf(60, 1, 60 - 2.9);
  side.SetPeerStep(step, kStart);
  EXPECT_TRUE(side.Decide(Rows(1), kStart).wait()) << "as without a spread and a mean step";
  step.set_elapsed_us(std::numeric_limits<int64_t>::min());
  side.SetPeerStep(step, kStart);
  EXPECT_FALSE(side.Decide(Rows(1), kStart).wait()) << "a step that has just begun";
}

}  // namespace
}  // namespace tokenrouter
