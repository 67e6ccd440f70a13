// Deferral end to end: what the core sends to workers, and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using S = ScriptedScheduler;
using Kind = BatchingPolicy::Kind;
using ::testing::ElementsAre;

absl::Duration Ms(double milliseconds) { return absl::Milliseconds(milliseconds); }

CoreOptions Batching(BatchingPolicy policy) {
  CoreOptions options;
  options.batching = policy;
  return options;
}

uint64_t Outcomes(const S& s, Role role, WaitOutcome outcome) {
  return s.core.counters().deferrals[Index(role)][Index(outcome)];
}

// Both workers, on dedicated devices unless `device` is set, with steps of known lengths.
void AttachMeasured(S* s, const std::string& device = "") {
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    wire::WorkerHello hello = S::Hello(role, RoleName(role));
    hello.set_device_key(device);
    for (const int rows : {1, 2, 4, 8}) {
      wire::StepSample* const sample = hello.add_samples();
      sample->set_rows(rows);
      sample->set_new_ids(rows);
      sample->set_elapsed_us(role == Role::kSmall ? 6000 + 20 * rows : 24000 + 100 * rows);
    }
    s->Attach(role == Role::kSmall ? S::kSmall : S::kLarge, hello);
  }
  s->Connect();
}

// Small requests 1..n; then the first hands off to the large side.
void SubmitAndHandOff(S* s, int requests, int32_t max_defer_ms = 0) {
  for (int i = 1; i <= requests; ++i) {
    wire::Submit submit = S::MakeSubmit(static_cast<uint64_t>(i));
    submit.mutable_spec()->set_max_defer_ms(max_defer_ms);
    s->Submit(submit);
  }
  s->Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
}

void StepEnds(S* s, StreamId stream, std::vector<wire::RowReport> rows, int64_t elapsed_us) {
  wire::WorkerFrame frame;
  frame.mutable_step()->set_rows(static_cast<int32_t>(rows.size()));
  frame.mutable_step()->set_new_ids(static_cast<int64_t>(rows.size()));
  frame.mutable_step()->set_elapsed_us(elapsed_us);
  for (const wire::RowReport& row : rows) *frame.add_rows() = row;
  s->ToCore(stream, frame);
}

TEST(Deferral, AFixedWaitEndsOnTimeThoughNothingComesIn) {
  S s(Batching({.kind = Kind::kFixedWait, .wait_large_ms = 8}));
  s.AttachAll();
  SubmitAndHandOff(&s, 2);
  EXPECT_EQ(s.Told(S::kLarge).releases_size(), 0);
  EXPECT_EQ(s.core.NextDeadline(), s.now + Ms(8));
  s.now = s.core.NextDeadline();
  s.core.Flush(s.now);
  EXPECT_THAT(s.Told(S::kLarge).releases(), ElementsAre(1u));
  EXPECT_EQ(s.core.NextDeadline(), absl::InfiniteFuture());
  EXPECT_EQ(Outcomes(s, Role::kLarge, WaitOutcome::kTimer), 1u);
}

TEST(Deferral, NoRowWaitsUnderTheModelWithoutAPlan) {
  S s;
  AttachMeasured(&s);
  SubmitAndHandOff(&s, 4);
  EXPECT_THAT(s.Told(S::kLarge).releases(), ElementsAre(1u));
  EXPECT_EQ(Outcomes(s, Role::kLarge, WaitOutcome::kImmediate), 1u);
  s.Tick(Ms(10));
  EXPECT_FALSE(s.Told(S::kSmall).has_deferral());
}

// The plan's balance: a small step that is about to end is worth waiting for.
class Balanced : public ::testing::Test {
 protected:
  void SetUp() override {
    AttachMeasured(&s_);
    for (int i = 1; i <= 6; ++i) s_.Submit(static_cast<uint64_t>(i));
    Position base = 3;
    for (int i = 0; i < 40; ++i) {  // Most small rows are routed.
      StepEnds(&s_, S::kSmall, {S::HandingOff(S::Row(1, 1, base, {}), Role::kLarge)}, 6000);
      StepEnds(&s_, S::kLarge, {S::HandingOff(S::Row(1, 1, base, {50}, 2), Role::kSmall)}, 24000);
      s_.Ack(1, ++base);
    }
    PairPlan plan;
    plan.inputs.requests = 6;
    plan.prediction = {
        .policy = {.kind = Kind::kModel, .step_small_ms = 6.1, .step_large_ms = 24.1},
        .routed_per_s = 2,
        .large_alone_per_s = 1,
        .routed_ms_per_token = 1,
        .large_alone_ms_per_token = 2};
    s_.core.AdoptPlan(0, plan, Ms(1), s_.now);
    // From here on five rows run on the small side, and row 1 hands off 4 ms later.
    StepEnds(&s_, S::kSmall, {}, 6000);
    s_.ForgetFrames();
    s_.now += Ms(4);
    s_.Send(S::kSmall, S::HandingOff(S::Row(1, 1, base, {}), Role::kLarge));
  }
  S s_;
};

TEST_F(Balanced, RowsWaitForASmallStepAndGoWhenItHasEnded) {
  EXPECT_EQ(s_.Told(S::kLarge).releases_size(), 0);
  EXPECT_GT(s_.core.NextDeadline(), s_.now + Ms(2)) << "when the small step is overdue";
  s_.now += Ms(2);
  std::vector<wire::RowReport> rows;
  for (const uint64_t key : {2, 3, 4, 5}) {
    rows.push_back(S::HandingOff(S::Row(key, 1, 3, {}), Role::kLarge));
  }
  StepEnds(&s_, S::kSmall, rows, 6000);
  EXPECT_THAT(s_.Told(S::kLarge).releases(), ElementsAre(1u, 2u, 3u, 4u, 5u))
      << "the one row that is left is not worth a second wait";
  EXPECT_EQ(Outcomes(s_, Role::kLarge, WaitOutcome::kBalance), 1u);
}

TEST_F(Balanced, RowsGoWhenTheSmallStepDoesNotEnd) {
  EXPECT_EQ(s_.Told(S::kLarge).releases_size(), 0);
  s_.now = s_.core.NextDeadline();
  s_.core.Flush(s_.now);
  EXPECT_THAT(s_.Told(S::kLarge).releases(), ElementsAre(1u));
  EXPECT_EQ(Outcomes(s_, Role::kLarge, WaitOutcome::kTimer), 1u);
}

TEST_F(Balanced, TheSmallSideIsSentTheRuleAndLargeSteps) {
  s_.Tick(Ms(1));
  wire::CommandFrame told = s_.Told(S::kSmall);
  EXPECT_TRUE(told.deferral().delay_balance());
  EXPECT_EQ(told.deferral().mean_step_us(), 6100);
  EXPECT_FALSE(told.has_peer_step()) << "no large step runs";
  s_.Tick(Ms(100));
  told = s_.Told(S::kSmall);
  EXPECT_FALSE(told.has_deferral()) << "the rule has not changed";
  EXPECT_EQ(told.peer_step().batch(), 1);
  EXPECT_EQ(told.peer_step().expected_returns(), 1);
  EXPECT_NEAR(static_cast<double>(told.peer_step().predicted_us()), 24100, 500);
  StepEnds(&s_, S::kLarge, {S::HandingOff(S::Row(1, 1, 43, {50}, 2), Role::kSmall)}, 24000);
  told = s_.Told(S::kSmall);
  EXPECT_EQ(told.extends_size(), 1) << "in the frame of the row that came back";
  ASSERT_TRUE(told.has_peer_step());
  EXPECT_EQ(told.peer_step().batch(), 0);
  EXPECT_EQ(told.peer_step().seq(), 2u);
}

TEST(Deferral, RowsAreHeldWhileTheLargeWorkerRunsItself) {
  S s(Batching({.kind = Kind::kStatic, .m_large = 1}));
  AttachMeasured(&s);
  SubmitAndHandOff(&s, 3);
  EXPECT_THAT(s.Told(S::kLarge).releases(), ElementsAre(1u));
  s.now += Ms(2);
  s.Send(S::kSmall, S::HandingOff(S::Row(2, 1, 3, {40}), Role::kLarge));
  EXPECT_EQ(s.Told(S::kLarge).releases_size(), 0) << "rows that arrive until then may join it";
  EXPECT_NEAR(absl::ToDoubleMilliseconds(s.core.NextDeadline() - s.now), 22.1, .5);
  s.now += Ms(10);
  StepEnds(&s, S::kLarge, {S::HandingOff(S::Row(1, 1, 4, {50}, 2), Role::kSmall)}, 12000);
  EXPECT_THAT(s.Told(S::kLarge).releases(), ElementsAre(2u)) << "it ended early";
}

// A large worker on a dedicated device whose steps cost by the id, under a policy that waits.
class CostlyIds : public ::testing::Test {
 protected:
  // `most_ids` and `most_step` limit a step; 0: no limit.
  void Attach(int64_t most_ids = 0, absl::Duration most_step = absl::ZeroDuration()) {
    wire::WorkerHello large = S::Hello(Role::kLarge, "large");
    for (const int ids : {1, 10, 100}) {
      for (const int rows : {1, 4}) {
        wire::StepSample* const sample = large.add_samples();
        sample->set_rows(rows);
        sample->set_new_ids(rows * ids);
        sample->set_elapsed_us(10000 + 1000 * rows * ids);
      }
    }
    large.set_max_step_ids(most_ids);
    large.set_max_step_us(absl::ToInt64Microseconds(most_step));
    s_.Attach(S::kSmall, S::Hello(Role::kSmall, "small"));
    s_.Attach(S::kLarge, large);
    s_.Connect();
    s_.Submit(1);
    s_.Submit(2);
    s_.Tick(Ms(1));
  }
  // The predicted milliseconds of the large step that the small side was sent.
  double Told() {
    return static_cast<double>(s_.Told(S::kSmall).peer_step().predicted_us()) / 1000;
  }
  S s_{Batching({.kind = Kind::kStatic, .m_small = 2, .m_large = 1})};
};

TEST_F(CostlyIds, APredictionCountsAllUncomputedTokensOfARow) {
  Attach();
  s_.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {}), Role::kLarge));
  EXPECT_NEAR(Told(), 10 + 3, .5) << "the prompt";
  s_.now += Ms(11);
  StepEnds(&s_, S::kLarge, {S::HandingOff(S::Row(1, 1, 3, {50}, 2), Role::kSmall)}, 11000);
  s_.Send(S::kSmall, S::Row(1, 1, 4, {40}));
  s_.Send(S::kSmall, S::Row(1, 1, 5, {41}));
  s_.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 6, {}), Role::kLarge));
  EXPECT_NEAR(Told(), 10 + 3, .5) << "its own last token and two of the small side";
  s_.Send(S::kSmall, S::HandingOff(S::Row(2, 1, 3, {}), Role::kLarge));
  s_.now += Ms(11);
  StepEnds(&s_, S::kLarge, {S::HandingOff(S::Row(1, 1, 6, {50}, 2), Role::kSmall)}, 11000);
  EXPECT_NEAR(Told(), 10 + 3, .5) << "the other row's prompt, and no id that was computed";
}

TEST_F(CostlyIds, NoStepIsPredictedBeyondTheIdsThatTheWorkerAllows) {
  Attach(/*most_ids=*/2);
  s_.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {}), Role::kLarge));
  EXPECT_NEAR(Told(), 10 + 2, .5);
}

TEST_F(CostlyIds, NoStepIsPredictedBeyondTheTimeThatTheWorkerAllows) {
  Attach(/*most_ids=*/0, Ms(11.5));
  s_.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {}), Role::kLarge));
  EXPECT_NEAR(Told(), 11.5, .2);
}

TEST(Deferral, ARequestBoundsItsOwnWait) {
  S s(S::WaitingFor(4));
  s.AttachAll();
  SubmitAndHandOff(&s, 3, /*max_defer_ms=*/30);
  EXPECT_EQ(s.core.NextDeadline(), s.now + Ms(30));
  s.now += Ms(30);
  s.core.Flush(s.now);
  EXPECT_THAT(s.Told(S::kLarge).releases(), ElementsAre(1u));
  EXPECT_EQ(Outcomes(s, Role::kLarge, WaitOutcome::kBound), 1u);
}

TEST(Deferral, TheSmallSideIsSentNoHintsUnderGreedy) {
  S s(Batching({.kind = Kind::kGreedy}));
  AttachMeasured(&s);
  SubmitAndHandOff(&s, 3);
  s.Tick(Ms(10));
  const wire::CommandFrame told = s.Told(S::kSmall);
  EXPECT_FALSE(told.has_deferral());
  EXPECT_FALSE(told.has_peer_step());
}

TEST(Deferral, AnUrgentRowCutsTheLeaseOfTheOtherSide) {
  S s(S::WaitingFor(4));
  AttachMeasured(&s, "device");
  wire::Submit calm = S::MakeSubmit(1);
  s.Submit(calm);
  wire::Submit urgent = S::MakeSubmit(2);
  urgent.mutable_spec()->set_max_defer_ms(50);
  s.Submit(urgent);
  const wire::Lease first = s.Told(S::kSmall).lease();
  EXPECT_EQ(first.max_ms(), 200);
  s.Send(S::kSmall, S::HandingOff(S::Row(2, 1, 3, {40}), Role::kLarge));
  const wire::CommandFrame told = s.Told(S::kSmall);
  ASSERT_TRUE(told.has_lease());
  EXPECT_EQ(told.lease().lease_id(), first.lease_id()) << "the lease in force";
  EXPECT_EQ(told.lease().max_ms(), 43) << "50 ms less a small step";
  s.now += Ms(44);
  wire::WorkerFrame frame;
  frame.mutable_lease_return()->set_lease_id(first.lease_id());
  frame.mutable_lease_return()->set_ready(1);
  s.ToCore(S::kSmall, frame);
  EXPECT_TRUE(s.Told(S::kLarge).has_lease());
  EXPECT_EQ(Outcomes(s, Role::kLarge, WaitOutcome::kBound), 1u);
}

}  // namespace
}  // namespace tokenrouter
