// Workers whose stream broke and who attach again: their KV is of use, and no request waits for
// long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using S = ScriptedScheduler;

constexpr absl::Duration kGrace = absl::Seconds(1);
constexpr StreamId kOther = 11;
constexpr StreamId kAgain = 40;

// The worker of this stream once more, with what it still holds.
wire::WorkerHello Again(Role role, StreamId stream, const std::vector<int>& requests) {
  wire::WorkerHello hello = S::Hello(role, "worker-" + std::to_string(stream));
  for (const int request : requests) {
    wire::HeldSequence* const held = hello.add_held();
    held->set_request_id("request-" + std::to_string(request));
    held->set_length(4);
  }
  return hello;
}

uint64_t Reopened(const S& s, Role role, ReopenCause cause) {
  return s.core.counters().reopened[Index(role)][Index(cause)];
}

TEST(Reattach, WithinTheGraceKeepsRequestsWhereTheirKvIs) {
  S s({}, kGrace);
  s.AttachAll();
  s.Submit(1);
  s.Submit(2);
  s.Send(S::kSmall, S::Row(1, 1, 3, {40}));
  s.Attach(Role::kSmall, kOther);
  s.ForgetFrames();
  s.WorkerGone(S::kSmall);
  s.Tick(kGrace - absl::Milliseconds(1));
  EXPECT_EQ(s.Told(kOther).opens_size(), 0);
  s.Attach(kAgain, Again(Role::kSmall, S::kSmall, {1, 2}));
  const wire::CommandFrame told = s.Told(kAgain);
  ASSERT_EQ(told.opens_size(), 2) << "both run again at once";
  EXPECT_EQ(told.opens(0).epoch(), 2u);
  EXPECT_THAT(told.opens(0).ids(), ElementsAre(1, 2, 3, 40));
  EXPECT_TRUE(told.opens(0).has_grant());
  s.Tick(absl::Seconds(1));
  EXPECT_EQ(s.Told(kOther).opens_size(), 0);
  EXPECT_EQ(Reopened(s, Role::kSmall, ReopenCause::kReattached), 2u);
  EXPECT_EQ(s.core.requests().Find(1)->side(Role::kSmall).losses(), 0) << "nobody died";
}

TEST(Reattach, OverAnOldStreamThatSeemsAliveKeepsThemToo) {
  S s({}, kGrace);
  s.AttachAll();
  s.Submit(1);
  s.Attach(Role::kSmall, kOther);
  s.ForgetFrames();
  s.Attach(kAgain, Again(Role::kSmall, S::kSmall, {1}));
  EXPECT_EQ(s.peers.closed_workers.at(S::kSmall).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(s.Told(kAgain).opens_size(), 1);
  EXPECT_EQ(s.Told(kOther).opens_size(), 0);
}

TEST(Reattach, TooLateMovesThem) {
  S s({}, kGrace);
  s.AttachAll();
  s.Submit(1);
  s.Attach(Role::kSmall, kOther);
  s.ForgetFrames();
  s.WorkerGone(S::kSmall);
  s.Tick(kGrace);
  EXPECT_EQ(s.Told(kOther).opens_size(), 1);
  EXPECT_EQ(Reopened(s, Role::kSmall, ReopenCause::kWorkerLost), 1u);
  s.Attach(kAgain, Again(Role::kSmall, S::kSmall, {1}));
  EXPECT_EQ(s.Told(kAgain).opens_size(), 0);
}

TEST(Reattach, WithoutItsSequencesMovesThemAtOnce) {
  S s({}, kGrace);
  s.AttachAll();
  s.Submit(1);
  s.Attach(Role::kSmall, kOther);
  s.ForgetFrames();
  s.WorkerGone(S::kSmall);
  s.Attach(kAgain, Again(Role::kSmall, S::kSmall, {}));
  EXPECT_EQ(s.Told(kAgain).opens_size() + s.Told(kOther).opens_size(), 1);
}

TEST(Reattach, ReopensSidesWithoutTheGrantAsWell) {
  S s({}, kGrace);
  s.AttachAll();
  s.Submit(1);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.Send(S::kLarge, S::HandingOff(S::Row(1, 1, 4, {50}, 2), Role::kSmall));
  s.WorkerGone(S::kLarge);
  s.ForgetFrames();
  s.Attach(kAgain, Again(Role::kLarge, S::kLarge, {1}));
  const wire::CommandFrame told = s.Told(kAgain);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_FALSE(told.opens(0).has_grant());
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 5, {41}), Role::kLarge));
  EXPECT_EQ(s.Told(kAgain).extends_size(), 1);
}

TEST(Reattach, ThePolicyOfAnEmptyPoolWaitsForTheGrace) {
  CoreOptions options;
  options.large_pool_gone = LargePoolGone::kFail;
  S s(options, kGrace);
  s.AttachAll();
  s.Submit(1);
  s.Submit(2);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.WorkerGone(S::kLarge);
  s.Send(S::kSmall, S::HandingOff(S::Row(2, 1, 3, {40}), Role::kLarge));
  s.Tick(kGrace - absl::Milliseconds(1));
  EXPECT_THAT(s.Heard().rejections(), IsEmpty());
  s.Tick(absl::Milliseconds(1));
  EXPECT_EQ(s.Heard().rejections_size(), 2);
}

TEST(Reattach, SilenceGetsNoGrace) {
  S s({}, kGrace);
  s.AttachAll();
  s.Submit(1);
  s.Tick(absl::Seconds(2));
  s.Attach(Role::kSmall, kOther);
  s.ForgetFrames();
  s.Tick(absl::Milliseconds(1001));
  EXPECT_TRUE(s.peers.closed_workers.contains(S::kSmall));
  EXPECT_EQ(s.Told(kOther).opens_size(), 1);
}

TEST(Reattach, ALeaseOfAGoneHolderIsFreeAtOnce) {
  S s({}, kGrace);
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    wire::WorkerHello hello = S::Hello(role, RoleName(role));
    hello.set_device_key("device");
    s.Attach(role == Role::kSmall ? S::kSmall : S::kLarge, hello);
  }
  s.Connect();
  s.Submit(1);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.ForgetFrames();
  s.WorkerGone(S::kSmall);
  EXPECT_TRUE(s.Told(S::kLarge).has_lease());
}

}  // namespace
}  // namespace tokenrouter
