#include "libs/batching/worker_core.h"

#include <map>

#include "libs/inference/fake_engine.h"
#include "libs/routing/wire_types.h"
#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

v1::GenerationSpec Spec(const std::string& id, const std::string& algorithm, int32_t max_new = 20) {
  v1::GenerationSpec spec;
  spec.set_request_id(id);
  spec.mutable_routing()->set_algorithm(algorithm);
  spec.mutable_sampling()->set_temperature(0);
  spec.mutable_sampling()->set_seed(5);
  spec.mutable_stop()->set_max_new_tokens(max_new);
  return spec;
}

v1::CommandFrame Commands(uint64_t term = 1) {
  v1::CommandFrame frame;
  frame.set_term(term);
  return frame;
}

v1::Open OpenOf(uint64_t request, const v1::GenerationSpec& spec, std::vector<TokenId> ids,
                bool turn = true, uint32_t epoch = 1) {
  v1::Open open;
  open.set_request(request);
  open.set_epoch(epoch);
  *open.mutable_spec() = spec;
  if (spec.prompt_length() == 0) open.mutable_spec()->set_prompt_length(ids.size());
  open.mutable_ids()->Add(ids.begin(), ids.end());
  if (turn) *open.mutable_turn()->mutable_window() = ToWire(Window::OwnRule());
  return open;
}

class WorkerCoreTest : public ::testing::Test {
 protected:
  void Start(WorkerCoreOptions options = {}, int64_t total_blocks = 1000) {
    options.worker_id = "w";
    engine_ = std::make_unique<FakeEngine>(HashEngineOptions{.model = {.usable_ids = 50},
                                                             .context_limit = 256,
                                                             .block_size = 4,
                                                             .total_blocks = total_blocks});
    core_ = std::make_unique<WorkerCore>(options, engine_.get());
  }
  void Attach(uint64_t term = 1, int32_t keep_unclaimed_ms = 1000) {
    v1::CommandFrame frame = Commands(term);
    frame.mutable_attached()->set_keep_unclaimed_ms(keep_unclaimed_ms);
    core_->Apply(frame, now_);
  }
  void Open(const v1::Open& open, uint64_t term = 1) {
    v1::CommandFrame frame = Commands(term);
    *frame.add_opens() = open;
    core_->Apply(frame, now_);
  }
  void Close(uint64_t request, uint32_t epoch = 1) {
    v1::CommandFrame frame = Commands();
    frame.add_closes()->set_request(request);
    frame.mutable_closes(0)->set_epoch(epoch);
    core_->Apply(frame, now_);
  }
  // The frame of one step; nothing when none can run.
  std::optional<v1::WorkerFrame> Step() {
    std::optional<PlannedStep> step = core_->Plan(now_);
    if (!step.has_value()) return std::nullopt;
    core_->Execute(&*step).IgnoreError();
    now_ += absl::Milliseconds(2);
    return core_->Complete(*std::move(step), now_);
  }

  std::unique_ptr<FakeEngine> engine_;
  std::unique_ptr<WorkerCore> core_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(WorkerCoreTest, DoesNothingBeforeItIsAttached) {
  Start();
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3}));
  EXPECT_FALSE(Step().has_value());
  EXPECT_EQ(core_->counters().stale_frames, 1u);
}

TEST_F(WorkerCoreTest, HelloSaysWhatTheEngineCanAndWhatIsHeld) {
  Start({.role = Role::kLarge, .pair = "p", .tokenizer_fingerprint = "f", .eos_ids = {2}});
  Attach(41);
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3}), 41);
  const v1::WorkerHello hello = core_->Hello().hello();
  EXPECT_EQ(hello.role(), v1::ROLE_LARGE);
  EXPECT_EQ(hello.highest_term(), 41u);
  EXPECT_EQ(hello.total_blocks(), 1000);
  ASSERT_THAT(hello.held(), SizeIs(1));
  EXPECT_EQ(hello.held(0).request_id(), "a");
  EXPECT_EQ(hello.held(0).length(), 3);
}

TEST_F(WorkerCoreTest, OneFrameCarriesEveryRowOfAStep) {
  Start();
  Attach();
  for (uint64_t i = 1; i <= 5; ++i) Open(OpenOf(i, Spec(absl::StrCat(i), "never"), {1, 2, 3}));
  const auto frame = Step();
  ASSERT_TRUE(frame.has_value());
  EXPECT_THAT(frame->rows(), SizeIs(5));
  EXPECT_EQ(frame->step().rows(), 5);
  EXPECT_EQ(frame->step().new_ids(), 15);
  EXPECT_EQ(frame->step().elapsed_us(), 2000);
  EXPECT_EQ(frame->step().ready(), 5);
  EXPECT_EQ(frame->rows(0).base_position(), 3);
  EXPECT_EQ(frame->rows(0).authors(), "\x01");
}

TEST_F(WorkerCoreTest, DropsFramesOfAnotherTerm) {
  Start();
  Attach(5);
  Open(OpenOf(1, Spec("a", "never"), {1}), 4);
  EXPECT_EQ(core_->sequences(), 0u);
  EXPECT_EQ(core_->counters().stale_frames, 1u);
}

TEST_F(WorkerCoreTest, ALargeTurnWaitsForItsRelease) {
  Start({.role = Role::kLarge});
  Attach();
  Open(OpenOf(1, Spec("a", "always"), {1, 2}));
  EXPECT_EQ(core_->Waiting(), 1);
  v1::CommandFrame release = Commands();
  release.add_releases(1);
  EXPECT_EQ(Step()->rows_size(), 0);  // It only catches up meanwhile.
  core_->Apply(release, now_);
  EXPECT_EQ(Step()->rows(0).authors(), "\x02");
}

TEST_F(WorkerCoreTest, ParksAtItsCreditAndGoesOnWithMore) {
  Start();
  Attach();
  v1::Open open = OpenOf(1, Spec("a", "never"), {1, 2});
  open.set_credit(3);
  Open(open);
  const auto first = Step();
  EXPECT_TRUE(first->rows(0).parked());
  EXPECT_FALSE(Step().has_value());
  v1::CommandFrame credit = Commands();
  credit.add_credits()->set_request(1);
  credit.mutable_credits(0)->set_until(4);
  core_->Apply(credit, now_);
  EXPECT_TRUE(Step()->rows(0).parked());
}

TEST_F(WorkerCoreTest, ReportsATurnThatIsParkedFromTheStart) {
  Start();
  Attach();
  v1::Open open = OpenOf(1, Spec("a", "never"), {1, 2});
  open.set_credit(2);
  Open(open);
  const auto said = core_->TakePending(now_);
  ASSERT_TRUE(said.has_value());
  EXPECT_TRUE(said->rows(0).parked());
}

TEST_F(WorkerCoreTest, AsksForIdsThatItNeverGot) {
  Start();
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2}, /*turn=*/false));
  v1::CommandFrame frame = Commands();
  v1::Extend& extend = *frame.add_extends();
  extend.set_request(1);
  extend.set_epoch(1);
  extend.set_base(5);
  extend.add_ids(9);
  v1::Extend& unknown = *frame.add_extends();
  unknown.set_request(77);
  core_->Apply(frame, now_);
  const auto said = core_->TakePending(now_);
  ASSERT_TRUE(said.has_value());
  ASSERT_THAT(said->need_ids(), SizeIs(2));
  EXPECT_EQ(said->need_ids(0).have(), 2);
  EXPECT_EQ(said->need_ids(1).request(), 77u);
  EXPECT_EQ(said->need_ids(1).have(), 0);
}

TEST_F(WorkerCoreTest, IgnoresAnExtendOfAnOlderEpoch) {
  Start();
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2}, /*turn=*/false, /*epoch=*/3));
  v1::CommandFrame frame = Commands();
  v1::Extend& extend = *frame.add_extends();
  extend.set_request(1);
  extend.set_epoch(2);
  *extend.mutable_turn()->mutable_window() = ToWire(Window::OwnRule());
  core_->Apply(frame, now_);
  EXPECT_EQ(core_->Ready(), 0);
}

TEST_F(WorkerCoreTest, CloseFreesEveryBlockAndIsConfirmedEvenWhenUnknown) {
  Start();
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3}));
  Step();
  EXPECT_LT(engine_->free_blocks(), 1000);
  Close(1);
  Close(2);
  const auto said = core_->TakePending(now_);
  ASSERT_TRUE(said.has_value());
  EXPECT_THAT(said->closed(), ::testing::ElementsAre(1, 2));
  EXPECT_EQ(engine_->free_blocks(), 1000);
  EXPECT_EQ(core_->sequences(), 0u);
}

TEST_F(WorkerCoreTest, CommandsDuringAStepTakeEffectAfterIt) {
  Start();
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3}));
  std::optional<PlannedStep> step = core_->Plan(now_);
  ASSERT_TRUE(step.has_value());
  Close(1);
  EXPECT_EQ(core_->sequences(), 1u);
  ASSERT_THAT(core_->Execute(&*step), IsOk());
  const v1::WorkerFrame frame = core_->Complete(*std::move(step), now_);
  EXPECT_THAT(frame.closed(), ::testing::ElementsAre(1));
  EXPECT_EQ(engine_->free_blocks(), 1000);
}

TEST_F(WorkerCoreTest, ReopeningAHeldRequestKeepsTheCommonPrefixInKv) {
  Start();
  Attach(1);
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3, 4, 5}));
  Step();
  core_->Detach();
  Attach(2);
  EXPECT_FALSE(Step().has_value());
  Open(OpenOf(9, Spec("a", "never"), {1, 2, 3, 8}), 2);
  const auto frame = Step();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->step().new_ids(), 1);
  EXPECT_EQ(frame->rows(0).request(), 9u);
}

TEST_F(WorkerCoreTest, FreesUnclaimedSequencesAfterTheirTime) {
  Start();
  Attach(1);
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3}));
  Step();
  core_->Detach();
  Attach(2, /*keep_unclaimed_ms=*/500);
  EXPECT_EQ(core_->NextDeadline(), now_ + absl::Milliseconds(500));
  now_ += absl::Milliseconds(499);
  core_->TakePending(now_);
  EXPECT_EQ(core_->sequences(), 1u);
  now_ += absl::Milliseconds(1);
  core_->TakePending(now_);
  EXPECT_EQ(core_->sequences(), 0u);
  EXPECT_EQ(engine_->free_blocks(), 1000);
}

TEST_F(WorkerCoreTest, AStreamLostDuringAStepLeavesNoRowsToReport) {
  Start();
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3}));
  std::optional<PlannedStep> step = core_->Plan(now_);
  core_->Detach();
  ASSERT_THAT(core_->Execute(&*step), IsOk());
  EXPECT_THAT(core_->Complete(*std::move(step), now_).rows(), SizeIs(0));
  EXPECT_FALSE(Step().has_value());
  EXPECT_EQ(core_->Hello().hello().held_size(), 1);
}

TEST_F(WorkerCoreTest, WhatItCannotServeEndsWithADetail) {
  Start();
  Attach();
  v1::GenerationSpec magic = Spec("a", "magic");
  Open(OpenOf(1, magic, {1, 2}));
  Open(OpenOf(2, Spec("b", "never"), {1, 999}));
  v1::Open no_ids = OpenOf(3, Spec("c", "never"), {});
  Open(no_ids);
  v1::Open tail = OpenOf(4, Spec("d", "never"), {1, 2});
  tail.set_tail(2);
  Open(tail);
  const auto said = core_->TakePending(now_);
  ASSERT_TRUE(said.has_value());
  ASSERT_THAT(said->rows(), SizeIs(4));
  for (const v1::RowReport& row : said->rows()) {
    EXPECT_EQ(row.finish().reason(), v1::FINISH_REASON_ERROR);
  }
  EXPECT_THAT(said->rows(0).finish().detail(), HasSubstr("unknown routing algorithm"));
  EXPECT_EQ(said->rows(0).base_position(), 2);
  EXPECT_THAT(said->rows(1).finish().detail(), HasSubstr("token id 999 is outside [0, 50)"));
  EXPECT_FALSE(Step().has_value());
}

TEST_F(WorkerCoreTest, AFailedStepEndsItsRowsAndFreesThem) {
  Start();
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3}));
  engine_->FailStep(1, absl::InternalError("boom"));
  const auto frame = Step();
  ASSERT_THAT(frame->rows(), SizeIs(1));
  EXPECT_THAT(frame->rows(0).finish().detail(), HasSubstr("boom"));
  EXPECT_EQ(engine_->free_blocks(), 1000);
  EXPECT_FALSE(Step().has_value());
}

TEST_F(WorkerCoreTest, OneBadRowDoesNotEndTheOthers) {
  Start();
  Attach();
  for (uint64_t i = 1; i <= 3; ++i) Open(OpenOf(i, Spec(absl::StrCat(i), "never", 5), {1, 2, 3}));
  engine_->FailStep(1, absl::InternalError("NaN"));  // All three together.
  engine_->FailStep(3, absl::InternalError("NaN"));  // The second of them alone.
  std::map<uint64_t, v1::FinishReason> ends;
  for (int i = 0; i < 12; ++i) {
    const auto frame = Step();
    if (!frame.has_value()) break;
    for (const v1::RowReport& row : frame->rows()) {
      if (row.has_finish()) ends[row.request()] = row.finish().reason();
    }
  }
  EXPECT_EQ(ends, (std::map<uint64_t, v1::FinishReason>{{1, v1::FINISH_REASON_LENGTH},
                                                        {2, v1::FINISH_REASON_ERROR},
                                                        {3, v1::FINISH_REASON_LENGTH}}));
}

TEST_F(WorkerCoreTest, AHistoryThatNeverFitsIsRefusedNotRetried) {
  Start({}, /*total_blocks=*/2);
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_FALSE(Step().has_value());
  const auto said = core_->TakePending(now_);
  ASSERT_TRUE(said.has_value());
  EXPECT_THAT(said->rows(0).finish().detail(), HasSubstr("needs 3 KV blocks"));
}

TEST_F(WorkerCoreTest, CatchesUpWithoutATurnOnlyOnADeviceOfItsOwn) {
  for (const char* device_key : {"", "shared"}) {
    Start({.device_key = device_key});
    Attach();
    Open(OpenOf(1, Spec("a", "never"), {1, 2, 3, 4}, /*turn=*/false));
    const auto frame = Step();
    EXPECT_EQ(frame.has_value(), *device_key == '\0');
    if (frame.has_value()) {
      EXPECT_EQ(frame->step().new_ids(), 4);
      EXPECT_THAT(frame->rows(), SizeIs(0));
    }
    EXPECT_FALSE(Step().has_value());
  }
}

TEST_F(WorkerCoreTest, ComputesOnASharedDeviceOnlyDuringItsTurn) {
  Start({.device_key = "gpu"});
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2}));
  EXPECT_FALSE(Step().has_value());
  now_ += absl::Milliseconds(30);
  v1::CommandFrame grant = Commands();
  grant.mutable_lease()->set_turn(4);
  grant.mutable_lease()->set_max_ms(3);  // A step takes 2 ms here.
  core_->Apply(grant, now_);
  EXPECT_EQ(core_->counters().lease_wait, absl::Milliseconds(30));
  EXPECT_FALSE(Step()->has_lease_return());
  const auto last = Step();
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->lease_return().turn(), 4u);
  EXPECT_EQ(last->lease_return().ready(), 1);
  EXPECT_FALSE(Step().has_value());
}

TEST_F(WorkerCoreTest, SaysOnceOnEachStreamThatItIsLeaving) {
  Start();
  Attach(1);
  core_->BeginDrain();
  EXPECT_TRUE(core_->TakePending(now_)->draining());
  EXPECT_FALSE(core_->TakePending(now_).has_value());
  Attach(2);
  EXPECT_TRUE(core_->TakePending(now_)->draining());
}

TEST_F(WorkerCoreTest, ReturnsALeaseAtOnceWhenNothingIsReady) {
  Start({.device_key = "gpu"});
  Attach();
  v1::CommandFrame grant = Commands();
  grant.mutable_lease()->set_turn(4);
  grant.mutable_lease()->set_max_ms(100);
  core_->Apply(grant, now_);
  const auto said = core_->TakePending(now_);
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(said->lease_return().turn(), 4u);
  EXPECT_FALSE(core_->TakePending(now_).has_value());
}

}  // namespace
}  // namespace tokenrouter
