#include "libs/worker/core/worker_core.h"

#include "libs/worker/testing/worker_core_fixture.h"

namespace tokenrouter {
namespace {

using ::testing::SizeIs;

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
  const wire::WorkerHello hello = core_->Hello().hello();
  EXPECT_EQ(hello.role(), api::ROLE_LARGE);
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
  EXPECT_EQ(core_->store().size(), 0u);
  EXPECT_EQ(core_->counters().stale_frames, 1u);
}

TEST_F(WorkerCoreTest, ALargeGrantWaitsForItsRelease) {
  Start({.role = Role::kLarge});
  Attach();
  Open(OpenOf(1, Spec("a", "always"), std::vector<TokenId>(kBackgroundIds + 1, 2)));
  EXPECT_EQ(core_->store().Waiting(), 1);
  wire::CommandFrame release = Commands();
  release.add_releases(1);
  EXPECT_EQ(Step()->rows_size(), 0);  // It only catches up meanwhile.
  core_->Apply(release, now_);
  EXPECT_EQ(Step()->rows(0).authors(), "\x02");
}

TEST_F(WorkerCoreTest, IsBlockedAtItsCreditAndGoesOnWithMore) {
  Start();
  Attach();
  wire::Open open = OpenOf(1, Spec("a", "never"), {1, 2});
  open.set_credit(3);
  Open(open);
  const auto first = Step();
  EXPECT_TRUE(first->rows(0).credit_blocked());
  EXPECT_FALSE(Step().has_value());
  wire::CommandFrame credit = Commands();
  credit.add_credits()->set_request(1);
  credit.mutable_credits(0)->set_until(4);
  core_->Apply(credit, now_);
  EXPECT_TRUE(Step()->rows(0).credit_blocked());
}

TEST_F(WorkerCoreTest, ReportsAGrantThatIsCreditBlockedFromTheStart) {
  Start();
  Attach();
  wire::Open open = OpenOf(1, Spec("a", "never"), {1, 2});
  open.set_credit(2);
  Open(open);
  const auto said = core_->TakePending(now_);
  ASSERT_TRUE(said.has_value());
  EXPECT_TRUE(said->rows(0).credit_blocked());
}

TEST_F(WorkerCoreTest, AsksForIdsThatItNeverGot) {
  Start();
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2}, /*turn=*/false));
  wire::CommandFrame frame = Commands();
  wire::Extend& extend = *frame.add_extends();
  extend.set_request(1);
  extend.set_epoch(1);
  extend.set_base(5);
  extend.add_ids(9);
  wire::Extend& unknown = *frame.add_extends();
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
  wire::CommandFrame frame = Commands();
  wire::Extend& extend = *frame.add_extends();
  extend.set_request(1);
  extend.set_epoch(2);
  *extend.mutable_grant()->mutable_window() = ToWire(Window::OwnRule());
  core_->Apply(frame, now_);
  EXPECT_EQ(core_->store().Ready(), 0);
}

TEST_F(WorkerCoreTest, CloseFreesEveryBlockAndIsConfirmedEvenWhenUnknown) {
  Start();
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3}));
  Step();
  EXPECT_LT(core_->store().free_blocks(), 1000);
  Close(1);
  Close(2);
  const auto said = core_->TakePending(now_);
  ASSERT_TRUE(said.has_value());
  EXPECT_THAT(said->closed(), ::testing::ElementsAre(1, 2));
  EXPECT_EQ(core_->store().free_blocks(), 1000);
  EXPECT_EQ(core_->store().size(), 0u);
}

TEST_F(WorkerCoreTest, CommandsDuringAStepTakeEffectAfterIt) {
  Start();
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3}));
  std::optional<PlannedStep> step = core_->Plan(now_);
  ASSERT_TRUE(step.has_value());
  Close(1);
  EXPECT_EQ(core_->store().size(), 1u);
  ASSERT_THAT(core_->Execute(&*step), IsOk());
  const wire::WorkerFrame frame = core_->Complete(*std::move(step), now_);
  EXPECT_THAT(frame.closed(), ::testing::ElementsAre(1));
  EXPECT_EQ(core_->store().free_blocks(), 1000);
}

TEST_F(WorkerCoreTest, CatchesUpWithoutAGrantOnlyOnADedicatedDevice) {
  for (const char* device_key : {"", "shared"}) {
    Start({.device_key = device_key});
    Attach();
    Open(OpenOf(1, Spec("a", "never"), std::vector<TokenId>(kBackgroundIds, 2), /*turn=*/false));
    const auto frame = Step();
    EXPECT_EQ(frame.has_value(), *device_key == '\0');
    if (frame.has_value()) {
      EXPECT_EQ(frame->step().new_ids(), kBackgroundIds);
      EXPECT_THAT(frame->rows(), SizeIs(0));
    }
    EXPECT_FALSE(Step().has_value());
  }
}

TEST_F(WorkerCoreTest, TellsWhatItStillPrefillsInBackground) {
  Start({.idle_step_tokens = kBackgroundIds});
  Attach();
  Open(OpenOf(1, Spec("a", "never"), std::vector<TokenId>(2 * kBackgroundIds + 1, 2),
              /*turn=*/false));
  EXPECT_EQ(Step()->step().background_ids(), kBackgroundIds + 1);
  Open(OpenOf(2, Spec("b", "never"), {1, 2, 3}));
  EXPECT_EQ(Step()->step().background_ids(), kBackgroundIds + 1) << "a decode grant comes first";
  Close(2);
  EXPECT_EQ(Step()->step().background_ids(), 1);
}

// Knows that an id takes a millisecond.
class ForeseeingEngine : public FakeEngine {
 public:
  using FakeEngine::FakeEngine;
  absl::Duration Predict(int /*rows*/, int64_t new_ids) const override {
    return absl::Milliseconds(new_ids);
  }
};

TEST_F(WorkerCoreTest, CutsAPromptSoThatAChunkFitsIntoAStepAndALease) {
  const struct {
    int step_ms, lease_ms;  // 0: without a limit, a dedicated device.
    int chunk;
  } rows[] = {{50, 0, 50},  {1, 0, kMaxVerify + 1}, {500, 0, 120},          {0, 50, 50},
              {80, 50, 50}, {50, 80, 50},           {0, 1, kMaxVerify + 1}, {0, 500, 120}};
  for (const auto& [step_ms, lease_ms, chunk] : rows) {
    WorkerCoreOptions options = {.device_key = lease_ms > 0 ? "gpu" : "", .max_step_tokens = 200};
    if (step_ms > 0) options.max_step = absl::Milliseconds(step_ms);
    Start(options);
    ForeseeingEngine engine(
        {.model = {.usable_ids = 50}, .context_limit = 256, .block_size = 4, .total_blocks = 1000});
    core_ = std::make_unique<WorkerCore>(core_->options(), &engine);
    Attach();
    Open(OpenOf(1, Spec("a", "never"), std::vector<TokenId>(120, 3)));
    wire::CommandFrame grant = Commands();
    grant.mutable_lease()->set_lease_id(1);
    grant.mutable_lease()->set_max_ms(lease_ms);
    core_->Apply(grant, now_);
    EXPECT_EQ(Step()->step().new_ids(), chunk) << step_ms << " " << lease_ms;
  }
}

}  // namespace
}  // namespace tokenrouter
