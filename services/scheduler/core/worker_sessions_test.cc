// Workers: which may attach, and what they are sent.
#include "services/scheduler/core/worker_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using S = ScriptedScheduler;

std::string Refusal(S* s, StreamId stream, const wire::WorkerHello& hello) {
  s->Attach(stream, hello);
  const auto found = s->peers.closed_workers.find(stream);
  return found == s->peers.closed_workers.end() ? "" : std::string(found->second.message());
}

TEST(WorkerHello, IsAnsweredWithWhatThePairAllows) {
  S s;
  wire::WorkerHello small = S::Hello(Role::kSmall, "small");
  small.set_usable_ids(900);
  small.clear_eos_ids();
  small.add_eos_ids(7);
  s.Attach(S::kSmall, small);
  s.Attach(Role::kLarge, S::kLarge);
  const wire::CommandFrame told = s.Told(S::kLarge);
  EXPECT_EQ(told.attached().usable_ids(), 900);
  EXPECT_THAT(told.attached().stop_ids(), ElementsAre(7, 999));
  EXPECT_EQ(told.attached().heartbeat_ms(), 1000);
  // The first worker was sent other values, so it attaches again.
  EXPECT_EQ(s.peers.closed_workers.at(S::kSmall).code(), absl::StatusCode::kAborted);
  s.Attach(12, small);
  EXPECT_THAT(s.Told(12).attached().stop_ids(), ElementsAre(7, 999));
  EXPECT_FALSE(s.peers.closed_workers.contains(S::kLarge));
}

TEST(WorkerHello, MustFitItsPair) {
  S s;
  s.Attach(Role::kSmall, S::kSmall);
  wire::WorkerHello hello = S::Hello(Role::kLarge, "large");
  hello.set_tokenizer_fingerprint("other");
  EXPECT_THAT(Refusal(&s, 30, hello), HasSubstr("same tokenizer"));
  hello = S::Hello(Role::kSmall, "small");
  hello.set_model("another");
  EXPECT_THAT(Refusal(&s, 31, hello), HasSubstr("runs model another"));
  hello = S::Hello(Role::kLarge, "large");
  hello.set_protocol_version(99);
  EXPECT_THAT(Refusal(&s, 32, hello), HasSubstr("version 99"));
  hello = S::Hello(Role::kLarge, "large");
  hello.set_role(api::ROLE_UNSPECIFIED);
  EXPECT_THAT(Refusal(&s, 33, hello), HasSubstr("role 0"));
  hello = S::Hello(Role::kLarge, "large");
  hello.set_context_limit(0);
  EXPECT_THAT(Refusal(&s, 34, hello), HasSubstr("context limit 0"));
  EXPECT_EQ(s.core.directory().workers().size(), 1u);
}

TEST(WorkerHello, OfAnotherPairIsIndependent) {
  S s;
  s.Attach(Role::kSmall, S::kSmall);
  wire::WorkerHello hello = S::Hello(Role::kSmall, "small");
  hello.set_pair("another");
  hello.set_tokenizer_fingerprint("other");
  EXPECT_EQ(Refusal(&s, 30, hello), "");
  s.Connect();
  s.Submit(1);
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 1);
  EXPECT_EQ(s.Told(30).opens_size(), 0);
}

TEST(WorkerFrame, ThatFailsARequestWithoutTheGrantClosesThatSide) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.Send(S::kLarge, S::HandingOff(S::Row(1, 1, 4, {50}, 2), Role::kSmall));
  s.ForgetFrames();
  s.Send(S::kLarge, S::Finished(S::Row(1, 1, 5, {}), 5));
  EXPECT_EQ(s.Told(S::kLarge).closes_size(), 1);
  EXPECT_EQ(s.core.requests().size(), 1) << "the small side goes on";
  s.Closed(S::kLarge, 1);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 5, {41}), Role::kLarge));
  EXPECT_EQ(s.Told(S::kLarge).opens(0).epoch(), 2u);
}

TEST(WorkerFrame, ErrorsEndTheRequestWithTheirDetail) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.ForgetFrames();
  wire::RowReport row = S::Row(1, 1, 3, {});
  row.mutable_finish()->set_position(3);
  row.mutable_finish()->set_reason(api::FINISH_REASON_ERROR);
  row.mutable_finish()->set_detail("engine step failed");
  s.Send(S::kSmall, row);
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.chunks_size(), 1);
  EXPECT_EQ(heard.chunks(0).finish().reason(), api::FINISH_REASON_ERROR);
  EXPECT_EQ(heard.chunks(0).finish().detail(), "engine step failed");
}

// The longest step that a plan for one request assumes.
double PlannedMaxStepMs(const std::string& device_key, int64_t max_step_us) {
  S s;
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    wire::WorkerHello hello = S::Hello(role, RoleName(role));
    hello.set_device_key(device_key);
    hello.set_max_step_us(role == Role::kLarge ? max_step_us : 0);
    for (int rows = 1; rows <= 16; ++rows) {
      wire::StepSample* const sample = hello.add_samples();
      sample->set_rows(rows);
      sample->set_new_ids(rows);
      sample->set_elapsed_us(10000);
    }
    s.Attach(role == Role::kSmall ? S::kSmall : S::kLarge, hello);
  }
  s.Connect();
  s.Submit(1);
  const std::vector<PlanInputs> wanted = s.core.WantedPlans(s.now);
  EXPECT_EQ(wanted.size(), 1u);
  return wanted.empty() ? -1 : wanted[0].max_step_ms;
}

TEST(WorkerSessionsTest, PlansRespectTheLongestAllowedStep) {
  EXPECT_EQ(PlannedMaxStepMs("", 0), 0) << "no limit";
  EXPECT_EQ(PlannedMaxStepMs("", 250000), 250);
  EXPECT_EQ(PlannedMaxStepMs("device", 0), 200) << "the longest lease";
  EXPECT_EQ(PlannedMaxStepMs("device", 250000), 200);
  EXPECT_EQ(PlannedMaxStepMs("device", 150000), 150);
}

// ---- leases ----

class SharedDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const Role role : {Role::kSmall, Role::kLarge}) {
      wire::WorkerHello hello = S::Hello(role, RoleName(role));
      hello.set_device_key("device");
      s_.Attach(role == Role::kSmall ? S::kSmall : S::kLarge, hello);
    }
    s_.Connect();
    s_.ForgetFrames();
  }
  void Return(StreamId stream, uint64_t lease_id, int ready) {
    wire::WorkerFrame frame;
    frame.mutable_lease_return()->set_lease_id(lease_id);
    frame.mutable_lease_return()->set_ready(ready);
    s_.ToCore(stream, frame);
  }
  S s_;
};

TEST_F(SharedDevice, GrantsAtTheFirstWorkAndToOneAtATime) {
  s_.Submit(1);
  wire::CommandFrame told = s_.Told(S::kSmall);
  ASSERT_TRUE(told.has_lease()) << "in the frame that brings the work";
  EXPECT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.lease().max_ms(), 200);
  EXPECT_EQ(told.lease().yield_at_handoffs(), 1);
  s_.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  EXPECT_FALSE(s_.Told(S::kLarge).has_lease()) << "the small worker still holds it";
  Return(S::kSmall, told.lease().lease_id(), 0);
  told = s_.Told(S::kLarge);
  ASSERT_TRUE(told.has_lease());
  Return(S::kLarge, told.lease().lease_id() + 1, 0);
  s_.Submit(2);
  EXPECT_FALSE(s_.Told(S::kSmall).has_lease()) << "a return of another lease has no effect";
}

TEST_F(SharedDevice, DoesNotSpinOnAWorkerThatCanRunNothing) {
  s_.Submit(1);
  uint64_t lease_id = s_.Told(S::kSmall).lease().lease_id();
  Return(S::kSmall, lease_id, 0);
  EXPECT_FALSE(s_.Told(S::kSmall).has_lease());
  // A new command may change that, and so may time.
  s_.Submit(2);
  lease_id = s_.Told(S::kSmall).lease().lease_id();
  EXPECT_GT(lease_id, 0u);
  Return(S::kSmall, lease_id, 0);
  EXPECT_FALSE(s_.Told(S::kSmall).has_lease());
  s_.Beat(S::kSmall);
  EXPECT_TRUE(s_.Told(S::kSmall).has_lease());
}

TEST_F(SharedDevice, GrantsAgainWhenACommandCrossedTheReturn) {
  s_.Submit(1);
  const uint64_t lease_id = s_.Told(S::kSmall).lease().lease_id();
  s_.Submit(2);  // It is on its way while the worker reports that no row is ready.
  Return(S::kSmall, lease_id, 0);
  EXPECT_TRUE(s_.Told(S::kSmall).has_lease());
}

TEST_F(SharedDevice, TakesTheLeaseBackFromADeadOrSlowHolder) {
  s_.Submit(1);
  s_.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s_.Told(S::kLarge);
  s_.Tick(absl::Milliseconds(1200));
  EXPECT_FALSE(s_.Told(S::kLarge).has_lease());
  s_.Tick(absl::Milliseconds(1));
  wire::CommandFrame told = s_.Told(S::kLarge);
  ASSERT_TRUE(told.has_lease()) << "200 ms and a second have passed";
  EXPECT_EQ(s_.core.counters().leases[0][Index(LeaseOutcome::kExpired)], 1u);
  s_.ForgetFrames();
  s_.Submit(2);
  EXPECT_FALSE(s_.Told(S::kSmall).has_lease());
  s_.WorkerGone(S::kLarge);
  EXPECT_TRUE(s_.Told(S::kSmall).has_lease());
  EXPECT_EQ(s_.core.counters().leases[1][Index(LeaseOutcome::kHolderLost)], 1u);
}

TEST_F(SharedDevice, LeavesTheLeaseForTwoStepsAsLongAsTheHolderForesees) {
  s_.Submit(1);
  wire::WorkerFrame beat;
  beat.mutable_heartbeat()->set_step_predicted_us(500'000);
  s_.ToCore(S::kSmall, beat);
  s_.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s_.Told(S::kLarge);
  s_.Tick(absl::Milliseconds(2200));
  EXPECT_FALSE(s_.Told(S::kLarge).has_lease());
  s_.Tick(absl::Milliseconds(1));
  EXPECT_TRUE(s_.Told(S::kLarge).has_lease()) << "200 ms, two steps and a second have passed";
}

TEST_F(SharedDevice, CountsNoCreditBlockedRowsAsReady) {
  wire::RowReport row = S::Row(1, 1, 3, std::vector<TokenId>(64, 40));
  row.set_credit_blocked(true);
  s_.Submit(1);
  const uint64_t lease_id = s_.Told(S::kSmall).lease().lease_id();
  s_.Send(S::kSmall, row);
  Return(S::kSmall, lease_id, 0);
  s_.Beat(S::kSmall);
  EXPECT_FALSE(s_.Told(S::kSmall).has_lease());
  s_.Ack(1, 40);
  EXPECT_TRUE(s_.Told(S::kSmall).has_lease());
}

}  // namespace
}  // namespace tokenrouter
