// How rows of a WorkerCore wait for a fuller batch.
#include <random>

#include "libs/worker/core/worker_core.h"
#include "libs/worker/testing/worker_core_fixture.h"

namespace tokenrouter {
namespace {

constexpr int64_t kMillisecond = 1000;

class WorkerDeferralTest : public WorkerCoreTest {
 protected:
  // Three requests that have written their first token, on a worker that knows its steps.
  void SetUp() override { StartWith({}); }
  void StartWith(WorkerCoreOptions options) {
    for (const int rows : {1, 2, 4, 8}) {
      wire::StepSample& sample = options.samples.emplace_back();
      sample.set_rows(rows);
      sample.set_new_ids(rows);
      sample.set_elapsed_us(2 * kMillisecond);
    }
    Start(options);
    Attach();
    for (uint64_t i = 1; i <= 3; ++i) OpenOne(i);
    ASSERT_TRUE(Step().has_value());
  }
  void OpenOne(uint64_t key) { Open(OpenOf(key, Spec(absl::StrCat(key), "never"), {1, 2, 3})); }
  void Send(const wire::Deferral& deferral, const wire::PeerStep& peer) {
    wire::CommandFrame frame = Commands();
    *frame.mutable_deferral() = deferral;
    *frame.mutable_peer_step() = peer;
    core_->Apply(frame, now_);
  }
  static wire::Deferral LeastRows(int rows, int64_t cap_us = 50 * kMillisecond) {
    wire::Deferral deferral;
    deferral.set_least_rows(rows);
    deferral.set_cap_us(cap_us);
    return deferral;
  }
  static wire::PeerStep Peer(int64_t predicted_us, int batch = 2) {
    wire::PeerStep peer;
    peer.set_batch(batch);
    peer.set_expected_returns(batch);
    peer.set_predicted_us(predicted_us);
    return peer;
  }
  uint64_t Count(WaitOutcome outcome) const {
    return core_->counters().deferrals[static_cast<int>(outcome)];
  }
};

TEST_F(WorkerDeferralTest, RowsWaitAndRunWhenMoreCome) {
  Send(LeastRows(4), Peer(100 * kMillisecond));
  EXPECT_FALSE(Step().has_value());
  EXPECT_EQ(core_->NextDeadline(), now_ + absl::Milliseconds(50));
  wire::Open open = OpenOf(4, Spec("4", "never"), {1, 2, 3});
  Open(open);
  EXPECT_EQ(Step()->step().rows(), 4);
  EXPECT_EQ(Count(WaitOutcome::kSize), 1u);
  EXPECT_GT(core_->NextDeadline(), now_ + absl::Milliseconds(50));
}

TEST_F(WorkerDeferralTest, RowsRunAtTheCap) {
  Send(LeastRows(9), Peer(100 * kMillisecond));
  const absl::Time start = now_;
  EXPECT_FALSE(Step().has_value());
  now_ = core_->NextDeadline();
  EXPECT_EQ(now_, start + absl::Milliseconds(50));
  EXPECT_EQ(Step()->step().rows(), 3);
  EXPECT_EQ(Count(WaitOutcome::kBound), 1u);
}

TEST_F(WorkerDeferralTest, RowsRunWhenTheStepOfTheOtherSideIsOverdue) {
  Send(LeastRows(9), Peer(10 * kMillisecond));
  EXPECT_FALSE(Step().has_value());
  now_ = core_->NextDeadline();
  EXPECT_TRUE(Step().has_value());
  EXPECT_EQ(Count(WaitOutcome::kTimer), 1u);
  EXPECT_TRUE(Step().has_value());  // The stale PeerStep holds nothing.
  EXPECT_TRUE(Step().has_value());
}

TEST_F(WorkerDeferralTest, TheDelayBalanceWaitsForAStepThatIsAboutToEnd) {
  wire::Deferral deferral;
  deferral.set_delay_balance(true);
  deferral.set_cap_us(50 * kMillisecond);
  Send(deferral, Peer(900, /*batch=*/6));
  EXPECT_FALSE(Step().has_value());
  now_ += absl::Microseconds(900);
  wire::CommandFrame frame = Commands();
  for (uint64_t key = 11; key <= 16; ++key) {
    *frame.add_opens() = OpenOf(key, Spec(absl::StrCat(key), "never"), {1, 2, 3});
  }
  core_->Apply(frame, now_);
  EXPECT_EQ(Step()->step().rows(), 9);
  EXPECT_EQ(Count(WaitOutcome::kBalance), 1u);
}

TEST_F(WorkerDeferralTest, TheOtherSidesStepBeganBeforeItsMessageWasRead) {
  std::optional<PlannedStep> step = core_->Plan(now_);
  ASSERT_TRUE(step.has_value());
  ASSERT_THAT(core_->Execute(&*step), IsOk());
  wire::CommandFrame frame = Commands();
  *frame.mutable_deferral() = LeastRows(9);
  *frame.mutable_peer_step() = Peer(10 * kMillisecond);
  const absl::Time arrived = now_;
  now_ += absl::Milliseconds(4);
  core_->Apply(frame, now_, arrived);
  core_->Complete(*std::move(step), now_);
  EXPECT_FALSE(Step().has_value());
  EXPECT_EQ(core_->NextDeadline(), arrived + absl::Microseconds(10600));
}

TEST_F(WorkerDeferralTest, ABoundOfOneRequestReleasesAll) {
  struct {
    int32_t max_defer_ms, token_slo_ms;
    absl::Duration most;
  } const kCases[] = {
      {7, 0, absl::Milliseconds(7)},
      {0, 120, absl::Milliseconds(18)},  // Beside 2 ms of its own and 100 ms of the other side.
      {0, 90, absl::ZeroDuration()}};
  for (const auto& bounds : kCases) {
    StartWith({});
    wire::GenerationSpec spec = Spec("bounded", "never");
    spec.set_max_defer_ms(bounds.max_defer_ms);
    spec.set_token_slo_ms(bounds.token_slo_ms);
    Open(OpenOf(9, spec, {1, 2, 3}));
    ASSERT_TRUE(Step().has_value());
    Send(LeastRows(9), Peer(100 * kMillisecond));
    const bool waits = bounds.most > absl::ZeroDuration();
    const absl::Time start = now_;
    EXPECT_EQ(Step().has_value(), !waits);
    if (!waits) continue;
    EXPECT_NEAR(absl::ToDoubleMilliseconds(core_->NextDeadline() - start),
                absl::ToDoubleMilliseconds(bounds.most), 0.5);
    now_ = core_->NextDeadline();
    EXPECT_TRUE(Step().has_value());
    EXPECT_EQ(Count(WaitOutcome::kBound), 1u);
  }
}

TEST_F(WorkerDeferralTest, ARowWithABoundOnItsFirstTokenNeverWaitsForIt) {
  Send(LeastRows(9), Peer(100 * kMillisecond));
  EXPECT_FALSE(Step().has_value());
  wire::GenerationSpec spec = Spec("first", "never");
  spec.set_ttft_slo_ms(10000);
  Open(OpenOf(9, spec, {1, 2, 3}));
  EXPECT_TRUE(Step().has_value());
  EXPECT_FALSE(Step().has_value());
}

TEST_F(WorkerDeferralTest, AStepWithAPromptIsNeverDeferred) {
  Send(LeastRows(9), Peer(100 * kMillisecond));
  EXPECT_FALSE(Step().has_value());
  Open(OpenOf(9, Spec("prompt", "never"), std::vector<TokenId>(60, 3)));
  EXPECT_EQ(Step()->step().new_ids(), 63);
  EXPECT_FALSE(Step().has_value());
}

TEST_F(WorkerDeferralTest, DetachClearsWhatTheSchedulerSaid) {
  Send(LeastRows(9), Peer(100 * kMillisecond));
  EXPECT_FALSE(Step().has_value());
  core_->Detach();
  EXPECT_EQ(core_->NextDeadline(), absl::InfiniteFuture());
  Attach(2);
  Open(OpenOf(1, Spec("1", "never"), {1, 2, 3}), 2);
  EXPECT_TRUE(Step().has_value());
  EXPECT_TRUE(Step().has_value());
}

TEST_F(WorkerDeferralTest, AWaitEndsWithItsRows) {
  Send(LeastRows(9), Peer(100 * kMillisecond));
  EXPECT_FALSE(Step().has_value());
  for (uint64_t key = 1; key <= 3; ++key) Close(key);
  EXPECT_FALSE(Step().has_value());
  EXPECT_GT(core_->NextDeadline(), now_ + absl::Milliseconds(50));
}

TEST_F(WorkerDeferralTest, NothingWaitsOnASharedDeviceOrOnTheLargeSide) {
  wire::CommandFrame frame = Commands();
  *frame.mutable_deferral() = LeastRows(9);
  *frame.mutable_peer_step() = Peer(100 * kMillisecond);
  frame.mutable_lease()->set_lease_id(1);
  frame.add_releases(1);
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    Start({.role = role, .device_key = role == Role::kSmall ? "shared" : ""});
    Attach();
    OpenOne(1);
    core_->Apply(frame, now_);
    EXPECT_TRUE(Step().has_value());
    core_->Apply(frame, now_);
    EXPECT_TRUE(Step().has_value());
    EXPECT_EQ(core_->counters().deferrals, WaitCounts());
  }
}

TEST_F(WorkerDeferralTest, HelloTellsTheSamplesEveryTime) {
  EXPECT_EQ(core_->Hello().hello().samples_size(), 4);
  core_->Detach();
  EXPECT_EQ(core_->Hello().hello().samples_size(), 4);
}

// Whatever the scheduler says, no row that could run waits longer than the cap and one step.
TEST_F(WorkerDeferralTest, NoRowWaitsLongerThanTheCapAndOneStep) {
  constexpr absl::Duration kCap = absl::Milliseconds(20), kStep = absl::Milliseconds(2);
  int waits = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    StartWith({.max_rows = 16});
    std::mt19937 random(seed);
    const auto below = [&random](int limit) { return static_cast<int>(random() % limit); };
    std::map<uint64_t, absl::Time> last_run;
    for (uint64_t key = 1; key <= 3; ++key) last_run[key] = now_;
    uint64_t next = 10;
    for (int event = 0; event < 120; ++event) {
      wire::CommandFrame frame = Commands();
      if (below(3) == 0) {
        wire::Deferral& deferral = *frame.mutable_deferral();
        deferral.set_least_rows(below(2) * below(12));
        deferral.set_wait_us(below(2) * below(30000));
        deferral.set_delay_balance(below(2) == 0);
        deferral.set_mean_step_us(below(2) * below(60000));
        deferral.set_step_spread(0.01 * below(50));
        deferral.set_cap_us(absl::ToInt64Microseconds(kCap) * below(5) / 4);
      }
      if (below(2) == 0) *frame.mutable_peer_step() = Peer(below(40000), below(4));
      if (below(4) == 0 && last_run.size() < 14) {
        *frame.add_opens() =
            OpenOf(next, Spec(absl::StrCat(next), "never", /*max_new=*/200), {1, 2, 3});
        last_run[next++] = now_;
      }
      core_->Apply(frame, now_);
      if (const auto done = Step()) {
        for (const wire::RowReport& row : done->rows()) {
          EXPECT_LE(now_ - last_run[row.request()], kCap + 2 * kStep) << "seed " << seed;
          last_run[row.request()] = now_;
          if (row.has_finish()) last_run.erase(row.request());
        }
      } else if (!last_run.empty()) {
        ++waits;
        now_ = std::min(now_ + absl::Microseconds(below(5000)), core_->NextDeadline());
      }
    }
  }
  EXPECT_GT(waits, 1000);
}

}  // namespace
}  // namespace tokenrouter
