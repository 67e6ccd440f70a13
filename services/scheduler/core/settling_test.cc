// The first moments of a term: workers and gateways of before may still be on their way back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using S = ScriptedScheduler;

const absl::Duration kSettling = CoreOptions().settling;

CoreOptions WithPolicy(LargePoolGone policy) {
  CoreOptions options;
  options.large_pool_gone = policy;
  return options;
}

// A running request of before, with one token.
wire::Submit Resumed(uint64_t handle) {
  wire::Submit submit = S::MakeSubmit(handle);
  submit.add_ids(40);
  submit.set_authors("\1");
  submit.set_resumed(true);
  return submit;
}

// The gateway and the small worker are back, and the request needs the large one.
void ComeBackWithoutLarge(S* s) {
  s->Connect();
  s->Attach(Role::kSmall, S::kSmall);
  s->Submit(Resumed(7));
  s->Send(S::kSmall, S::HandingOff(S::Row(1, 1, 4, {41}), Role::kLarge));
}

TEST(Settling, TurnsWaitForALargeWorkerThatIsOnItsWay) {
  for (const auto policy : {LargePoolGone::kFail, LargePoolGone::kSmallOnly}) {
    S s(WithPolicy(policy));
    ComeBackWithoutLarge(&s);
    s.Tick(kSettling - absl::Milliseconds(1));
    EXPECT_EQ(s.Heard().rejections_size(), 0);
    ASSERT_NE(s.core.requests().Find(1), nullptr);
    EXPECT_FALSE(s.core.requests().Find(1)->service().degraded);
    s.Attach(Role::kLarge, S::kLarge);
    const wire::CommandFrame told = s.Told(S::kLarge);
    ASSERT_EQ(told.opens_size(), 1);
    EXPECT_THAT(told.opens(0).ids(), ElementsAre(1, 2, 3, 40, 41));
  }
}

TEST(Settling, BeginsWithTheFirstPeer) {
  S s(WithPolicy(LargePoolGone::kFail));
  for (int i = 0; i < 10; ++i) s.Tick(kSettling);
  ComeBackWithoutLarge(&s);
  s.Tick(kSettling - absl::Milliseconds(1));
  EXPECT_EQ(s.Heard().rejections_size(), 0) << "it was started as a spare, and all come to it now";
  s.Attach(Role::kLarge, S::kLarge);
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 1);
}

TEST(Settling, ThePolicyIsAppliedOnceItIsOver) {
  S fails(WithPolicy(LargePoolGone::kFail));
  ComeBackWithoutLarge(&fails);
  fails.ForgetFrames();
  fails.Tick(kSettling);
  const wire::SchedulerFrame heard = fails.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "large_pool_gone");

  S small_only(WithPolicy(LargePoolGone::kSmallOnly));
  ComeBackWithoutLarge(&small_only);
  small_only.ForgetFrames();
  small_only.Tick(kSettling);
  EXPECT_TRUE(small_only.core.requests().Find(1)->service().degraded);
  EXPECT_EQ(small_only.Told(S::kSmall).extends(0).grant().window().kind(),
            wire::Window::KIND_UNTIL_END);
}

TEST(Settling, APoolThatHadAWorkerIsKnownToBeEmpty) {
  S s(WithPolicy(LargePoolGone::kFail));
  ComeBackWithoutLarge(&s);
  s.Attach(Role::kLarge, S::kLarge);
  s.ForgetFrames();
  s.WorkerGone(S::kLarge);
  EXPECT_EQ(s.Heard().rejections_size(), 1);
}

TEST(Settling, WaitsAreNoShorter) {
  CoreOptions options = WithPolicy(LargePoolGone::kWait);
  options.no_large_worker_timeout = options.no_small_worker_timeout = absl::ZeroDuration();
  S s(options);
  ComeBackWithoutLarge(&s);
  s.Submit(Resumed(8));
  s.WorkerGone(S::kSmall);  // Was there: known to be gone.
  S fresh(options);
  fresh.Connect();
  fresh.Submit(Resumed(9));
  s.ForgetFrames();
  fresh.ForgetFrames();
  s.Tick(kSettling - absl::Milliseconds(1));
  fresh.Tick(kSettling - absl::Milliseconds(1));
  EXPECT_EQ(s.Heard().rejections(0).reason(), "no_small_worker");
  EXPECT_NE(s.core.requests().Find(1), nullptr);
  EXPECT_EQ(fresh.Heard().rejections_size(), 0);
  fresh.Tick(absl::Milliseconds(1));
  EXPECT_EQ(fresh.Heard().rejections_size(), 1);
}

TEST(Settling, BeginsAnewWithARaisedTerm) {
  S s(WithPolicy(LargePoolGone::kFail));
  s.AttachAll();
  s.Tick(kSettling);
  s.Connect(2, "other", S::kTerm + 5);
  s.Attach(Role::kSmall, 11);
  s.Submit(Resumed(7), 2);
  s.Send(11, S::HandingOff(S::Row(1, 1, 4, {41}), Role::kLarge));
  EXPECT_EQ(s.Heard(2).rejections_size(), 0);
  s.Attach(Role::kLarge, 21);
  EXPECT_EQ(s.Told(21).opens_size(), 1);
}

TEST(Settling, AWorkerThatIsSentAwayToAttachAgainIsOnItsWay) {
  S s(WithPolicy(LargePoolGone::kFail));
  s.Connect();
  s.Attach(Role::kLarge, S::kLarge);
  wire::Submit submit = Resumed(7);
  submit.mutable_grant()->set_role(api::ROLE_LARGE);
  submit.mutable_grant()->mutable_window()->set_kind(wire::Window::KIND_UNTIL_END);
  s.Submit(submit);
  s.ForgetFrames();
  wire::WorkerHello small = S::Hello(Role::kSmall, "small");
  small.set_usable_ids(900);
  s.Attach(S::kSmall, small);
  ASSERT_TRUE(s.peers.closed_workers.contains(S::kLarge));
  EXPECT_EQ(s.Heard().rejections_size(), 0);
  s.Attach(Role::kLarge, 21);
  EXPECT_EQ(s.Told(21).opens_size(), 1);
}

// ---- room for those who come back ----

TEST(Settling, NewRequestsLeaveRoomForResumedOnes) {
  CoreOptions options;
  options.max_requests = 2;
  S s(options);
  s.Attach(Role::kSmall, S::kSmall);
  s.Connect(1, "a");
  s.Connect(2, "b");
  s.Submit(S::MakeSubmit(1), 2);
  s.Submit(S::MakeSubmit(2), 2);
  const wire::SchedulerFrame refused = s.Heard(2);
  ASSERT_EQ(refused.rejections_size(), 1);
  EXPECT_EQ(refused.rejections(0).reason(), "max_requests");
  EXPECT_THAT(refused.rejections(0).message(), HasSubstr("just started"));
  EXPECT_GE(refused.rejections(0).retry_after_ms(), absl::ToInt64Milliseconds(kSettling));
  s.Submit(Resumed(7), 1);
  s.Submit(Resumed(8), 1);
  EXPECT_EQ(s.Heard(1).rejections_size(), 0);
  EXPECT_EQ(s.core.requests().size(), 3);
}

TEST(Settling, AfterItNewRequestsMayTakeWhatThereIs) {
  CoreOptions options;
  options.max_requests = 2;
  S s(options);
  s.AttachAll();
  s.Tick(kSettling);
  for (uint64_t handle = 1; handle <= 3; ++handle) s.Submit(handle);
  EXPECT_EQ(s.core.requests().size(), 2);
}

}  // namespace
}  // namespace tokenrouter
