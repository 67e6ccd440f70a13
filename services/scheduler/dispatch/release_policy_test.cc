#include "services/scheduler/dispatch/release_policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

absl::Duration Ms(double milliseconds) { return absl::Milliseconds(milliseconds); }

// t = base + per_row x rows + per_id x ids.
StepTimeEstimator Curve(double base, double per_row, double per_id = 0) {
  StepTimeEstimator curve;
  for (int round = 0; round < 30; ++round) {
    for (const int rows : {1, 2, 4, 8, 16}) {
      for (const int64_t ids : {rows, 4 * rows, 10 * rows}) {
        curve.Observe(rows, ids, base + per_row * rows + per_id * static_cast<double>(ids));
      }
    }
  }
  return curve;
}

class LargeReleaseTest : public ::testing::Test {
 protected:
  static constexpr double kRouted = 0.1;

  // Adds rows that came `waited` ago, with one uncomputed token each unless `ids` says otherwise.
  void Wait(int rows, absl::Duration waited = absl::ZeroDuration(), int64_t ids = 1) {
    for (int i = 0; i < rows; ++i) {
      rows_.push_back({.request = rows_.size() + 1, .since = kNow - waited, .uncomputed_ids = ids});
    }
  }
  void SmallStep(int rows, absl::Duration predicted, absl::Duration remaining) {
    steps_.push_back({.since = kNow - (predicted - remaining),
                      .rows = rows,
                      .ids = rows,
                      .predicted = predicted});
    snapshot_.busy_small += rows;
  }
  ReleaseDecision Decide(BatchingPolicy policy) {
    rule_.policy = policy;
    rule_.small = &small_;
    rule_.large = &large_;
    snapshot_.waiting = rows_;
    snapshot_.small = steps_;
    return DecideRelease(snapshot_, rule_);
  }

  StepTimeEstimator small_ = Curve(6, .02);
  StepTimeEstimator large_ = Curve(24, .1);
  ReleaseRule rule_ = {.routed = kRouted, .routed_lower = kRouted};
  std::vector<ReleaseSnapshot::Row> rows_;
  std::vector<RunningStep> steps_;
  ReleaseSnapshot snapshot_ = {.now = kNow};
};

TEST_F(LargeReleaseTest, GreedyReleasesAllRows) {
  Wait(1);
  snapshot_.own = {.since = kNow, .rows = 4, .predicted = Ms(30)};
  for (const Kind kind : {Kind::kGreedy, Kind::kLongestQueue}) {
    const ReleaseDecision decision = Decide({.kind = kind});
    EXPECT_TRUE(decision.release);
    EXPECT_EQ(decision.outcome, WaitOutcome::kImmediate);
  }
}

TEST_F(LargeReleaseTest, StaticWaitsForRowsWhileTheSmallSideIsBusy) {
  const BatchingPolicy three = {.kind = Kind::kStatic, .m_large = 3};
  Wait(2);
  snapshot_.busy_small = 1;
  EXPECT_FALSE(Decide(three).release);
  EXPECT_EQ(Decide(three).until, absl::InfiniteFuture()) << "an event decides again, not a time";
  snapshot_.busy_small = 0;
  EXPECT_EQ(Decide(three).outcome, WaitOutcome::kIdle);
  snapshot_.busy_small = 1;
  Wait(1);
  EXPECT_EQ(Decide(three).outcome, WaitOutcome::kSize);
}

TEST_F(LargeReleaseTest, FixedWaitCountsFromTheOldestRow) {
  Wait(1, Ms(2));
  Wait(1, Ms(5));
  const ReleaseDecision wait = Decide({.kind = Kind::kFixedWait, .wait_large_ms = 8});
  EXPECT_FALSE(wait.release);
  EXPECT_EQ(wait.until, kNow + Ms(3));
  EXPECT_EQ(Decide({.kind = Kind::kFixedWait, .wait_large_ms = 5}).outcome, WaitOutcome::kTimer);
}

// Batching model, section 8: gpu L k=1 b=4 r=.1 has tau* = 6.79 for A = .4.
TEST_F(LargeReleaseTest, BalanceWaitsForASmallStepThatEndsSoonEnough) {
  Wait(1);
  SmallStep(4, Ms(30), Ms(6.7));
  const ReleaseDecision wait = Decide({.kind = Kind::kModel});
  EXPECT_FALSE(wait.release);
  EXPECT_EQ(wait.until, kNow + Ms(6.7) + Ms(30 * .06)) << "until the small step is overdue";
  steps_.clear();
  SmallStep(4, Ms(30), Ms(6.9));
  EXPECT_EQ(Decide({.kind = Kind::kModel}).outcome, WaitOutcome::kBalance);
}

// Section 8: gpu L k=4 b=8 r=.2 has 6.71; cpu L k=1 b=1 r=.1 is negative, so it never waits.
TEST_F(LargeReleaseTest, BalanceFollowsTheModelsOtherVectors) {
  rule_.routed = rule_.routed_lower = .2;
  Wait(4);
  SmallStep(8, Ms(6), Ms(5.9));
  EXPECT_FALSE(Decide({.kind = Kind::kModel}).release);
  steps_ = {{.since = kNow, .rows = 8, .predicted = Ms(6.8)}};
  EXPECT_TRUE(Decide({.kind = Kind::kModel}).release);
  large_ = Curve(80, 12);
  rule_.routed = rule_.routed_lower = .1;
  rows_.resize(1);
  steps_ = {{.since = kNow - Ms(28.9), .rows = 1, .predicted = Ms(29)}};
  EXPECT_TRUE(Decide({.kind = Kind::kModel}).release);
}

TEST_F(LargeReleaseTest, BalanceTakesTheEndsOfSeveralWorkersTogether) {
  Wait(1);
  SmallStep(1, Ms(10), Ms(2.5));  // Brings too few rows by itself.
  EXPECT_TRUE(Decide({.kind = Kind::kModel}).release);
  SmallStep(4, Ms(10), Ms(5));
  EXPECT_FALSE(Decide({.kind = Kind::kModel}).release)
      << "both together are worth five milliseconds";
}

TEST_F(LargeReleaseTest, BalanceWaitsForNoStepThatIsUnknownOrOverdue) {
  Wait(1);
  EXPECT_EQ(Decide({.kind = Kind::kModel}).outcome, WaitOutcome::kIdle);
  SmallStep(4, absl::ZeroDuration(), absl::ZeroDuration());
  EXPECT_EQ(Decide({.kind = Kind::kModel}).outcome, WaitOutcome::kImmediate);
  steps_.clear();
  SmallStep(4, Ms(6), Ms(-2));
  EXPECT_EQ(Decide({.kind = Kind::kModel}).outcome, WaitOutcome::kTimer);
  steps_.clear();
  SmallStep(4, Ms(6), Ms(1));
  EXPECT_FALSE(Decide({.kind = Kind::kModel}).release);
  large_ = StepTimeEstimator();
  EXPECT_EQ(Decide({.kind = Kind::kModel}).outcome, WaitOutcome::kImmediate);
}

TEST_F(LargeReleaseTest, AWaitEndsWhenTheSmallStepIsOverdue) {
  Wait(1);
  SmallStep(4, Ms(30), Ms(3));
  snapshot_.now = Decide({.kind = Kind::kModel}).until;
  EXPECT_EQ(Decide({.kind = Kind::kModel}).outcome, WaitOutcome::kTimer);
}

// By hand: one row, .4 arrivals, T = 60: 60 x .4 / 1.4 = 17.1 less .1; with 12 it is 3.3.
TEST_F(LargeReleaseTest, ARowSavesTheMeanStepOfThePlan) {
  Wait(1);
  SmallStep(4, Ms(30), Ms(15));
  EXPECT_FALSE(Decide({.kind = Kind::kModel, .step_large_ms = 60}).release);
  EXPECT_TRUE(Decide({.kind = Kind::kModel, .step_large_ms = 12}).release);
}

TEST_F(LargeReleaseTest, HoldsRowsUntilOneHandoffLatencyBeforeItsOwnStepEnds) {
  Wait(3);
  rule_.handoff_latency = Ms(1);
  snapshot_.busy_small = 1;
  snapshot_.own = {.since = kNow - Ms(10), .rows = 4, .predicted = Ms(25)};
  const BatchingPolicy two = {.kind = Kind::kStatic, .m_large = 2};
  EXPECT_FALSE(Decide(two).release);
  EXPECT_EQ(Decide(two).until, kNow + Ms(14));
  snapshot_.own.since = kNow - Ms(24);
  EXPECT_EQ(Decide(two).outcome, WaitOutcome::kSize);
}

TEST_F(LargeReleaseTest, HoldsRowsNoLongerThanTheShortestOwnStep) {
  large_ = Curve(15, .15, .12);
  Wait(3);
  rule_.handoff_latency = Ms(1);
  snapshot_.busy_small = 1;
  // The curve gives 20 + .6 + 4.8 ms, of which only .48 of the 4.8 are certain.
  snapshot_.own = {.since = kNow, .rows = 4, .ids = 40, .predicted = Ms(20.4)};
  const BatchingPolicy two = {.kind = Kind::kStatic, .m_large = 2};
  EXPECT_NEAR(absl::ToDoubleMilliseconds(Decide(two).until - kNow), 20.4 - 4.32 - 1, .05);
  snapshot_.now += Ms(15.5);
  EXPECT_EQ(Decide(two).outcome, WaitOutcome::kSize);
}

TEST_F(LargeReleaseTest, HoldsNoRowFromAWorkerThatGoesOnByItself) {
  Wait(1);
  SmallStep(4, Ms(30), Ms(1));
  snapshot_.own = {.since = kNow, .rows = 4, .predicted = Ms(30)};
  EXPECT_FALSE(Decide({.kind = Kind::kModel}).release);
  snapshot_.background_ids = 1;
  EXPECT_EQ(Decide({.kind = Kind::kModel}).outcome, WaitOutcome::kBalance);
  snapshot_.own = {};
  EXPECT_FALSE(Decide({.kind = Kind::kModel}).release)
      << "no step is known of a worker that only prefills in the background";
}

// The small step that the rows of the running large step will start is an end like any other: it
// costs its own time and the handoff latency both ways.
TEST_F(LargeReleaseTest, PredictsTheSmallStepThatItsOwnRowsStart) {
  rule_.routed = rule_.routed_lower = .4;
  small_ = Curve(3, .01);
  Wait(2);
  snapshot_.own = {.since = kNow - Ms(30), .rows = 6, .ids = 6, .predicted = Ms(30)};
  EXPECT_FALSE(Decide({.kind = Kind::kModel}).release);
  rule_.handoff_latency = Ms(8);
  EXPECT_EQ(Decide({.kind = Kind::kModel}).outcome, WaitOutcome::kBalance);
  rule_.handoff_latency = absl::ZeroDuration();
  EXPECT_FALSE(Decide({.kind = Kind::kStatic, .m_large = 3}).release)
      << "six rows are on their way";
  rule_.returned = .05;
  EXPECT_TRUE(Decide({.kind = Kind::kModel}).release);
}

TEST_F(LargeReleaseTest, PredictsNoSmallStepOfASideWithoutMeasuredSteps) {
  small_ = StepTimeEstimator();
  rule_.routed = rule_.routed_lower = .4;
  Wait(2);
  snapshot_.own = {.since = kNow - Ms(30), .rows = 6, .ids = 6, .predicted = Ms(30)};
  EXPECT_EQ(Decide({.kind = Kind::kModel}).outcome, WaitOutcome::kImmediate);
}

TEST_F(LargeReleaseTest, PredictsNoSmallStepBesideOneThatEndsLater) {
  rule_.routed = rule_.routed_lower = .4;
  Wait(2);
  snapshot_.own = {.since = kNow - Ms(30), .rows = 6, .ids = 6, .predicted = Ms(30)};
  EXPECT_FALSE(Decide({.kind = Kind::kModel}).release);
  SmallStep(1, Ms(40), Ms(39));
  EXPECT_EQ(Decide({.kind = Kind::kModel}).outcome, WaitOutcome::kBalance)
      << "the rows would join the running small step";
}

TEST_F(LargeReleaseTest, WaitingCostsNothingWhileItsOwnStepRuns) {
  Wait(1);
  // Its ids may take less time than predicted, so the decision comes before the predicted end.
  large_ = Curve(24, .1, .2);
  snapshot_.own = {.since = kNow - Ms(26), .rows = 4, .ids = 40, .predicted = Ms(32.4)};
  SmallStep(4, Ms(20), Ms(11));
  EXPECT_FALSE(Decide({.kind = Kind::kModel}).release);
  snapshot_.own = {};
  EXPECT_TRUE(Decide({.kind = Kind::kModel}).release);
}

TEST_F(LargeReleaseTest, RowsJoinAStepThatBeginsInAnyCase) {
  Wait(2);
  SmallStep(4, Ms(30), Ms(1));
  snapshot_.own = {.since = kNow - Ms(30), .rows = 4, .predicted = Ms(30)};
  EXPECT_FALSE(Decide({.kind = Kind::kModel}).release);
  EXPECT_FALSE(Decide({.kind = Kind::kStatic, .m_large = 4}).release);
  rule_.returned = .5;  // Two of the four continue decoding.
  EXPECT_EQ(Decide({.kind = Kind::kModel}).outcome, WaitOutcome::kBalance);
  EXPECT_EQ(Decide({.kind = Kind::kStatic, .m_large = 4}).outcome, WaitOutcome::kSize);
}

TEST_F(LargeReleaseTest, BoundsClipEveryWait) {
  Wait(1);
  snapshot_.busy_small = 1;
  const BatchingPolicy many = {.kind = Kind::kStatic, .m_large = 100};
  rows_[0].bound.latest = kNow + Ms(40);
  EXPECT_EQ(Decide(many).until, kNow + Ms(40));
  rows_[0].bound.due = kNow + Ms(50);  // A large step takes 24.1.
  EXPECT_NEAR(absl::ToDoubleMilliseconds(Decide(many).until - kNow), 25.9, .1);
  rows_[0].bound.due = kNow + Ms(20);
  EXPECT_EQ(Decide(many).outcome, WaitOutcome::kBound);
  rows_[0].bound = {.latest = kNow};
  snapshot_.own = {.since = kNow, .rows = 4, .predicted = Ms(25)};
  EXPECT_EQ(Decide(many).outcome, WaitOutcome::kBound) << "it must run in the next step";
}

}  // namespace
}  // namespace tokenrouter
