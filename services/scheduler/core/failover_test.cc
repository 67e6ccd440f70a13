// What happens to requests whose worker is gone, in every phase and under every policy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using S = ScriptedScheduler;

constexpr StreamId kSmall2 = 11;
constexpr StreamId kLarge2 = 21;

CoreOptions WithPolicy(LargePoolGone policy) {
  CoreOptions options;
  options.large_pool_gone = policy;
  return options;
}

TEST(Failover, ReopensOnAnotherSmallWorkerWithANewEpoch) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Attach(Role::kSmall, kSmall2);
  s.Send(S::kSmall, S::Row(1, 1, 3, {40}));
  s.WorkerGone(S::kSmall);
  const wire::CommandFrame told = s.Told(kSmall2);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).epoch(), 2u);
  EXPECT_THAT(told.opens(0).ids(), ElementsAre(1, 2, 3, 40));
  EXPECT_EQ(told.opens(0).state(), "state");
  EXPECT_EQ(s.core.counters().reopened[Index(Role::kSmall)][Index(ReopenCause::kWorkerLost)], 1u);
  // Late rows of the dead worker are dropped; the new one goes on.
  s.ForgetFrames();
  s.Send(kSmall2, S::Row(1, 2, 4, {41}));
  EXPECT_EQ(s.Heard().chunks_size(), 1);
}

TEST(Failover, KeepsTheGrantWhereItIsWhenTheOtherSideIsLost) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.Attach(Role::kSmall, kSmall2);
  s.ForgetFrames();
  s.WorkerGone(S::kSmall);
  EXPECT_EQ(s.Told(kSmall2).opens_size(), 0) << "it is opened when it gets the decode grant";
  s.Send(S::kLarge, S::HandingOff(S::Row(1, 1, 4, {50}, 2), Role::kSmall));
  const wire::CommandFrame told = s.Told(kSmall2);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).epoch(), 2u);
  EXPECT_THAT(told.opens(0).ids(), ElementsAre(1, 2, 3, 40, 50));
}

TEST(Failover, RepeatsAVerificationWithItsTail) {
  S s;
  s.AttachAll();
  s.Attach(Role::kLarge, kLarge2);
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge, {60, 61}));
  const bool first = s.Told(S::kLarge).opens_size() == 1;
  s.WorkerGone(first ? S::kLarge : kLarge2);
  const wire::CommandFrame told = s.Told(first ? kLarge2 : S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_THAT(told.opens(0).ids(), ElementsAre(1, 2, 3, 40, 60, 61));
  EXPECT_EQ(told.opens(0).tail(), 2);
  EXPECT_EQ(told.opens(0).grant().verify(), 2);
  EXPECT_THAT(told.releases(), ElementsAre(1u));
}

TEST(Failover, SmallOnlyGoesOnWithoutTheLargeModelAndSaysSo) {
  S s(WithPolicy(LargePoolGone::kSmallOnly));
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge, {60, 61}));
  s.ForgetFrames();
  s.WorkerGone(S::kLarge);
  const wire::CommandFrame told = s.Told(S::kSmall);
  ASSERT_EQ(told.extends_size(), 1);
  EXPECT_EQ(told.extends(0).base(), 4) << "the tentative tail is dropped";
  EXPECT_EQ(told.extends(0).grant().window().kind(), wire::Window::KIND_UNTIL_END);
  EXPECT_EQ(told.extends(0).grant().verify(), 0);
  s.Send(S::kSmall, S::Row(1, 1, 4, {41}));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.chunks_size(), 1);
  EXPECT_TRUE(heard.chunks(0).degraded());
}

TEST(Failover, FailEndsTheRequestAtOnce) {
  S s(WithPolicy(LargePoolGone::kFail));
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.ForgetFrames();
  s.WorkerGone(S::kLarge);
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "large_pool_gone");
  EXPECT_EQ(heard.rejections(0).code(), static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_EQ(s.Told(S::kSmall).closes_size(), 1);
}

TEST(Failover, WaitGoesOnWithTheNextLargeWorkerOrEndsAtItsCap) {
  for (const bool comes_back : {true, false}) {
    S s(WithPolicy(LargePoolGone::kWait));
    s.AttachAll();
    s.Submit(7);
    s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
    s.WorkerGone(S::kLarge);
    s.ForgetFrames();
    for (int second = 0; second < 9; ++second) {
      s.Beat(S::kSmall);
      s.Tick(absl::Seconds(1));
    }
    EXPECT_EQ(s.Heard().rejections_size(), 0);
    if (comes_back) {
      s.Attach(Role::kLarge, kLarge2);
      ASSERT_EQ(s.Told(kLarge2).opens_size(), 1);
      continue;
    }
    s.Tick(absl::Seconds(1));
    const wire::SchedulerFrame heard = s.Heard();
    ASSERT_EQ(heard.rejections_size(), 1);
    EXPECT_EQ(heard.rejections(0).reason(), "large_pool_gone");
  }
}

TEST(Failover, BoundsTheWaitForASmallWorker) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.ForgetFrames();
  s.WorkerGone(S::kSmall);
  s.Tick(absl::Milliseconds(9999));
  EXPECT_EQ(s.Heard().rejections_size(), 0);
  s.Tick(absl::Milliseconds(1));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "no_small_worker");
  EXPECT_GT(heard.rejections(0).retry_after_ms(), 0);
}

TEST(Failover, GivesUpOnARequestThatIsReopenedTooOften) {
  CoreOptions options;
  options.max_reopens = 1;
  S s(options);
  s.AttachAll();
  s.Submit(7);
  s.ForgetFrames();
  for (StreamId stream = 30; stream < 32; ++stream) {
    s.Attach(Role::kSmall, stream);
    s.WorkerGone(stream == 30 ? S::kSmall : stream - 1);
  }
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "reopen_limit");
}

TEST(Failover, DeclaresASilentAndAWedgedWorkerDead) {
  S s;
  s.AttachAll();
  s.Attach(Role::kSmall, kSmall2);
  s.Submit(7);
  s.Tick(absl::Seconds(2));
  s.Beat(S::kSmall);
  s.Beat(S::kLarge, absl::Seconds(61));
  s.Tick(absl::Seconds(2));
  EXPECT_FALSE(s.peers.closed_workers.contains(S::kSmall));
  EXPECT_EQ(s.peers.closed_workers.at(kSmall2).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(s.peers.closed_workers.at(S::kLarge).message()),
              ::testing::HasSubstr("wedged for 1m1s"));
}

TEST(Failover, TakesAWorkerWhoseStepLoopHasStoppedForDead) {
  S s;
  s.AttachAll();
  s.Attach(Role::kSmall, kSmall2);
  s.Submit(7);
  wire::WorkerFrame frame;
  frame.mutable_heartbeat()->set_loop_elapsed_us(11'000'000);
  s.ToCore(S::kSmall, frame);
  s.Tick(absl::Milliseconds(10));
  ASSERT_TRUE(s.peers.closed_workers.contains(S::kSmall));
  EXPECT_THAT(std::string(s.peers.closed_workers.at(S::kSmall).message()),
              ::testing::HasSubstr("has not gone round for 11s"));
  EXPECT_EQ(s.Told(kSmall2).opens_size(), 1);
}

TEST(Failover, APauseOfTheSchedulerItselfIsNoSilenceOfItsPeers) {
  S s;
  s.AttachAll();
  s.now += absl::Seconds(10);
  s.core.ResetLiveness(s.now);
  s.Tick(absl::Seconds(3));
  EXPECT_TRUE(s.peers.closed_workers.empty());
  s.Tick(absl::Milliseconds(1));
  EXPECT_EQ(s.peers.closed_workers.size(), 2u) << "after that silence counts again";
}

TEST(Failover, ASlowStepWithAMatchingPredictionIsNoDeath) {
  S s;
  s.AttachAll();
  wire::WorkerFrame frame;
  frame.mutable_heartbeat()->set_step_elapsed_us(60'000'000);
  frame.mutable_heartbeat()->set_step_predicted_us(4'000'000);
  s.ToCore(S::kLarge, frame);
  s.Tick(absl::Seconds(1));
  EXPECT_TRUE(s.peers.closed_workers.empty());
}

TEST(Failover, PrefersTheNumericsClassThatWroteAndMarksAnother) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::Row(1, 1, 3, {40}));
  wire::WorkerHello other = S::Hello(Role::kSmall, "other");
  other.set_numerics_class("another");
  s.Attach(kSmall2, other);
  s.Attach(Role::kSmall, 12);
  s.WorkerGone(S::kSmall);
  EXPECT_EQ(s.Told(12).opens_size(), 1);
  s.Send(12, S::Row(1, 2, 4, {41}));
  EXPECT_FALSE(s.Heard().chunks(0).degraded());
  s.WorkerGone(12);
  EXPECT_EQ(s.Told(kSmall2).opens_size(), 1);
  s.Send(kSmall2, S::Row(1, 3, 5, {42}));
  EXPECT_TRUE(s.Heard().chunks(0).degraded());
}

TEST(Failover, SendsARequestToTheWorkerThatStillHoldsIt) {
  S s;
  s.Connect();
  s.Attach(Role::kSmall, S::kSmall);
  wire::WorkerHello holder = S::Hello(Role::kSmall, "holder");
  wire::HeldSequence* const held = holder.add_held();
  held->set_request_id("request-7");
  held->set_length(30);
  s.Attach(kSmall2, holder);
  s.Submit(7);
  EXPECT_EQ(s.Told(kSmall2).opens_size(), 1);
}

TEST(Failover, AWorkerThatAttachesAgainReplacesItsOldStream) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.ForgetFrames();
  s.Attach(40, S::Hello(Role::kSmall, "worker-10"));
  EXPECT_EQ(s.peers.closed_workers.at(S::kSmall).code(), absl::StatusCode::kAborted);
  const wire::CommandFrame told = s.Told(40);
  EXPECT_TRUE(told.has_attached());
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).epoch(), 2u);
}

}  // namespace
}  // namespace tokenrouter
