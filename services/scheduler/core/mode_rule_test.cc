#include "services/scheduler/core/mode_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/pair_model/pair_plan.h"
#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using S = ScriptedScheduler;

constexpr int32_t kWindow = 64;  // CoreOptions::large_alone_window.

CoreOptions LargeAlone(LargePoolGone policy = LargePoolGone::kWait) {
  CoreOptions options;
  options.forced_mode = ServiceMode::kLargeAlone;
  options.large_pool_gone = policy;
  return options;
}

wire::Submit Entropy(uint64_t handle, api::ServiceMode mode = api::SERVICE_MODE_UNSPECIFIED) {
  wire::Submit submit = S::MakeSubmit(handle, "entropy");
  (*submit.mutable_spec()->mutable_routing()->mutable_parameters())["threshold"] = 0.5;
  submit.mutable_spec()->set_service_mode(mode);
  return submit;
}

// The large worker's report at the end of a token window.
wire::RowReport WindowEnd(uint64_t request, uint32_t epoch, Position base, int count) {
  return S::HandingOff(S::Row(request, epoch, base, std::vector<TokenId>(count, 50), 2),
                       Role::kSmall);
}

TEST(ModeRule, OpensOnTheLargeSideWithAWindow) {
  S s(LargeAlone());
  s.AttachAll();
  s.Submit(Entropy(7));
  const wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).grant().window().kind(), wire::Window::KIND_TOKENS);
  EXPECT_EQ(told.opens(0).grant().window().tokens(), kWindow);
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 0);
  s.Send(S::kLarge, S::Row(1, 1, 3, {50}, 2));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.chunks_size(), 1);
  EXPECT_TRUE(heard.chunks(0).large_alone());
  EXPECT_EQ(s.core.counters().large_alone_requests, 1u);
}

TEST(ModeRule, LeavesAlgorithmsThatWriteUntilTheEndAlone) {
  S s(LargeAlone());
  s.AttachAll();
  s.Submit(7, "never");
  s.Submit(8, "always");
  ASSERT_EQ(s.Told(S::kSmall).opens_size(), 1);
  const wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).grant().window().kind(), wire::Window::KIND_UNTIL_END);
  s.Send(S::kLarge, S::Row(2, 1, 3, {50}, 2));
  EXPECT_FALSE(s.Heard().chunks(0).large_alone());
  EXPECT_EQ(s.core.counters().large_alone_requests, 0u);
}

TEST(ModeRule, RoutesARequestThatAsksForIt) {
  S s(LargeAlone());
  s.AttachAll();
  s.Submit(Entropy(7, api::SERVICE_MODE_ROUTED));
  ASSERT_EQ(s.Told(S::kSmall).opens_size(), 1);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  EXPECT_EQ(s.Told(S::kLarge).opens(0).grant().window().kind(), wire::Window::KIND_OWN_RULE);
  EXPECT_FALSE(s.Heard().chunks(0).large_alone());
}

TEST(ModeRule, ARequestThatAsksForTheLargeModelGetsItUntilTheEnd) {
  S s;
  s.AttachAll();
  s.Submit(Entropy(7, api::SERVICE_MODE_LARGE_ALONE));
  const wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).grant().window().kind(), wire::Window::KIND_UNTIL_END);
  s.Send(S::kLarge, S::Row(1, 1, 3, {50}, 2));
  EXPECT_TRUE(s.Heard().chunks(0).large_alone());
}

TEST(ModeRule, TheNextWindowFollowsWithoutATripToTheSmallSide) {
  S s(LargeAlone());
  s.AttachAll();
  s.Submit(Entropy(7));
  s.ForgetFrames();
  s.Send(S::kLarge, WindowEnd(1, 1, 3, 64));
  const wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.extends_size(), 1);
  EXPECT_EQ(told.extends(0).base(), 67);
  EXPECT_EQ(told.extends(0).ids_size(), 0);
  EXPECT_EQ(told.extends(0).grant().window().tokens(), kWindow);
  EXPECT_THAT(told.releases(), ElementsAre(1u));
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 0);
  EXPECT_EQ(s.core.counters().handoffs[Index(Role::kSmall)], 0u);
}

TEST(ModeRule, AChangeOfModeIsFollowedAtTheEndOfTheWindow) {
  S s(LargeAlone());
  s.AttachAll();
  s.Submit(Entropy(7));
  s.core.ForceMode(ServiceMode::kRouted);
  s.Send(S::kLarge, WindowEnd(1, 1, 3, 64));
  const wire::CommandFrame told = s.Told(S::kSmall);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).grant().window().kind(), wire::Window::KIND_OWN_RULE);
  EXPECT_EQ(told.opens(0).state(), "state");
  s.ForgetFrames();
  s.core.ForceMode(ServiceMode::kLargeAlone);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 67, {40}), Role::kLarge));
  EXPECT_FALSE(s.Heard().chunks(0).large_alone()) << "that token was routed";
  EXPECT_EQ(s.Told(S::kLarge).extends(0).grant().window().tokens(), kWindow);
}

// A pair whose load is better served by the large model alone: memory-bound at one request,
// compute-bound at sixteen.
void TeachLargeAlone(PairModel* model, absl::Time from, absl::Time until) {
  for (int rows = 1; rows <= 16; rows *= 2) {
    for (const int ids : {1, 10}) {
      model->mutable_seen().ObserveStep(Role::kSmall, rows, rows * ids,
                                        absl::Milliseconds(10 + rows + rows * ids));
      model->mutable_seen().ObserveStep(Role::kLarge, rows, rows * ids,
                                        absl::Milliseconds(40 + .5 * rows + 3 * rows * ids));
    }
  }
  model->mutable_seen().SetTopology(/*shared_device=*/true, absl::InfiniteDuration());
  model->mutable_seen().ObserveRows(Role::kSmall, 1000, 100);
  for (absl::Time now = from; now < until; now += absl::Milliseconds(10)) {
    const auto wanted = model->Wanted(32, now);
    if (wanted) model->Adopt(*MakePlan(*wanted), absl::Milliseconds(5), now);
  }
}

TEST(ModeRule, ARefusedRequestSpendsNoProbe) {
  RecordedPeers peers;
  CoreState state(CoreOptions(), S::kTerm, &peers);
  state.SetNow(absl::UnixEpoch());
  state.directory.Add(S::kLarge, S::Hello(Role::kLarge, "large"), state.now);
  RequestFinisher finisher(&state);
  Placement placement(&state, &finisher);
  const ModeRule rule(&state, &placement);
  TeachLargeAlone(&state.ModelOf(0), state.now, state.now + absl::Seconds(5));
  state.SetNow(state.now + absl::Seconds(15));  // A probe is due each ten seconds.
  ASSERT_EQ(state.ModeOf(0), ServiceMode::kLargeAlone);
  RequestGrant own;
  own.terms.mutable_window()->set_kind(wire::Window::KIND_OWN_RULE);
  const auto begin = [&] { return rule.AtAdmission(Entropy(7), own); };
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(begin().grant.large_alone) << "all were refused";
  for (int i = 0; i < 63; ++i) rule.Admitted(0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(begin().asked_for_probe);
    EXPECT_FALSE(begin().grant.large_alone) << "the probe, until one is admitted";
  }
  rule.Admitted(0);
  EXPECT_TRUE(begin().grant.large_alone);
}

TEST(ModeRule, AVerificationStaysWithTheLongerWindow) {
  S s(LargeAlone());
  s.AttachAll();
  s.core.ForceMode(ServiceMode::kRouted);
  s.Submit(7, "speculative");
  s.core.ForceMode(ServiceMode::kLargeAlone);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {}), Role::kLarge, {60, 61}));
  const wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).grant().verify(), 2);
  EXPECT_EQ(told.opens(0).grant().window().tokens(), kWindow);
}

TEST(ModeRule, ATailThatIsNotVerifiedIsLeftToTheAlgorithm) {
  S s(LargeAlone());
  s.AttachAll();
  s.core.ForceMode(ServiceMode::kRouted);
  s.Submit(7, "speculative");
  s.core.ForceMode(ServiceMode::kLargeAlone);
  wire::RowReport row = S::HandingOff(S::Row(1, 1, 3, {}), Role::kLarge, {60, 61});
  row.mutable_handoff()->set_verify(1);
  s.Send(S::kSmall, row);
  EXPECT_EQ(s.Told(S::kLarge).opens(0).grant().window().kind(), wire::Window::KIND_OWN_RULE);
}

TEST(ModeRule, ALostWorkerLeavesTheRestOfTheWindowToTheNext) {
  S s(LargeAlone());
  s.AttachAll();
  s.Attach(Role::kLarge, 21);
  s.Submit(Entropy(7));
  s.Send(S::kLarge, S::Row(1, 1, 3, {50, 50, 50, 50}, 2));
  s.WorkerGone(S::kLarge);
  const wire::CommandFrame told = s.Told(21);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).grant().window().tokens(), kWindow - 4);
}

TEST(ModeRule, WithoutALargeWorkerTheRequestIsRoutedUnderEveryPolicy) {
  for (const auto policy :
       {LargePoolGone::kFail, LargePoolGone::kSmallOnly, LargePoolGone::kWait}) {
    S s(LargeAlone(policy));
    s.Attach(Role::kSmall, S::kSmall);
    s.Connect();
    s.Submit(Entropy(7));
    EXPECT_EQ(s.Told(S::kSmall).opens_size(), 1);
    s.Attach(Role::kLarge, S::kLarge);
    s.Submit(Entropy(8));
    EXPECT_EQ(s.Told(S::kLarge).opens_size(), 1);
    s.Send(S::kLarge, S::Row(2, 1, 3, {50}, 2));
    s.Told(S::kSmall);
    s.WorkerGone(S::kLarge);
    const wire::CommandFrame told = s.Told(S::kSmall);
    ASSERT_EQ(told.opens_size(), 1);
    EXPECT_EQ(told.opens(0).grant().window().kind(), wire::Window::KIND_OWN_RULE);
    EXPECT_THAT(told.opens(0).ids(), ElementsAre(1, 2, 3, 50));
    s.Heard();
    s.Send(S::kSmall, S::Row(2, 1, 4, {40}));
    const wire::SchedulerFrame heard = s.Heard();
    EXPECT_FALSE(heard.chunks(0).large_alone());
    EXPECT_FALSE(heard.chunks(0).degraded()) << "its algorithm still decides";
  }
}

TEST(ModeRule, AnAskedForLargeModelFollowsThePolicyOfTheEmptyPool) {
  S s(LargeAlone(LargePoolGone::kFail));
  s.Attach(Role::kSmall, S::kSmall);
  s.Connect();
  s.Submit(Entropy(7, api::SERVICE_MODE_LARGE_ALONE));
  s.Tick(CoreOptions().settling);
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "large_pool_gone");
}

TEST(ModeRule, AFullLargeWorkerIsNotQueuedFor) {
  S s(LargeAlone());
  s.Attach(Role::kSmall, S::kSmall);
  wire::WorkerHello hello = S::Hello(Role::kLarge, "large");
  hello.set_max_sequences(1);
  s.Attach(S::kLarge, hello);
  s.Connect();
  s.Submit(Entropy(7));
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 1);
  s.Submit(Entropy(8));
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 1) << "it starts routed";
  // Its algorithm asks for the large model; the slot is freed at the end of the other's window.
  s.Send(S::kSmall, S::HandingOff(S::Row(2, 1, 3, {40}), Role::kLarge));
  s.ForgetFrames();
  s.Send(S::kLarge, WindowEnd(1, 1, 3, 64));
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 1);
  ASSERT_EQ(s.Told(S::kLarge).closes_size(), 1);
  s.Closed(S::kLarge, 1);
  const wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).request(), 2u);
}

TEST(ModeRule, AFullCacheOfTheLargeWorkerIsNotQueuedFor) {
  S s(LargeAlone());
  s.Attach(Role::kSmall, S::kSmall);
  wire::WorkerHello hello = S::Hello(Role::kLarge, "large");
  hello.set_total_blocks(16);  // 256 ids.
  s.Attach(S::kLarge, hello);
  s.Connect();
  const auto submit = [&s](uint64_t handle) {
    wire::Submit submit = Entropy(handle);
    for (int i = 3; i < 140; ++i) submit.add_ids(1);
    submit.mutable_spec()->set_prompt_length(140);
    s.Submit(submit);
  };
  submit(7);
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 1);
  submit(8);
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 1);
}

TEST(ModeRule, GrowsAWindowButNeverCutsOne) {
  RequestGrant own{.role = Role::kLarge};
  wire::Window* const window = own.terms.mutable_window();
  window->set_kind(wire::Window::KIND_TOKENS);
  window->set_tokens(100);
  EXPECT_EQ(WithLargeAloneWindow(own, kWindow).terms.window().tokens(), 100);
  window->set_tokens(1);
  EXPECT_EQ(WithLargeAloneWindow(own, kWindow).terms.window().tokens(), kWindow);
  for (const auto kind : {wire::Window::KIND_UNTIL_END, wire::Window::KIND_DELIMITER}) {
    window->set_kind(kind);
    const RequestGrant grant = WithLargeAloneWindow(own, kWindow);
    EXPECT_EQ(grant.terms.window().kind(), kind);
    EXPECT_TRUE(grant.large_alone);
    EXPECT_FALSE(grant.own.has_value());
  }
}

TEST(ModeRule, RefusesAnUnknownServiceMode) {
  S s;
  s.AttachAll();
  s.Submit(Entropy(7, static_cast<api::ServiceMode>(9)));
  EXPECT_EQ(s.Heard().rejections(0).message(),
            "request request-7: service_mode 9; allowed: 0 to 2");
  wire::Submit submit = Entropy(8);
  submit.mutable_spec()->set_ttft_slo_ms(-1);
  s.Submit(submit);
  EXPECT_EQ(s.Heard().rejections(0).message(),
            "request request-8: ttft_slo_ms is -1; allowed: at least 0");
}

}  // namespace
}  // namespace tokenrouter
