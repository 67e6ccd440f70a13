// Queues, slots, evictions, held handoffs and credits.
#include "services/scheduler/placement/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using S = ScriptedScheduler;

// One small worker and one large worker, with this many slots each.
void AttachWithSlots(S* s, int small, int large) {
  wire::WorkerHello hello = S::Hello(Role::kSmall, "small");
  hello.set_max_sequences(small);
  s->Attach(S::kSmall, hello);
  hello = S::Hello(Role::kLarge, "large");
  hello.set_max_sequences(large);
  s->Attach(S::kLarge, hello);
  s->Connect();
  s->ForgetFrames();
}

TEST(Placement, QueuesBeyondTheSlotsAndPlacesTheOldestFirst) {
  S s;
  AttachWithSlots(&s, 1, 1);
  for (uint64_t handle = 1; handle <= 3; ++handle) s.Submit(handle);
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 1);
  s.Cancel(1);
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 0) << "the slot is free once the worker confirms";
  s.Closed(S::kSmall, 1);
  const wire::CommandFrame told = s.Told(S::kSmall);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).request(), 2u);
}

TEST(Placement, RefusesWhenTheQueueIsFull) {
  CoreOptions options;
  options.max_queued = 1;
  S s(options);
  AttachWithSlots(&s, 1, 1);
  for (uint64_t handle = 1; handle <= 3; ++handle) s.Submit(handle);
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).handle(), 3u);
  EXPECT_EQ(heard.rejections(0).reason(), "queue_full");
  EXPECT_EQ(heard.rejections(0).code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_GE(heard.rejections(0).retry_after_ms(), 1000);
  EXPECT_LE(heard.rejections(0).retry_after_ms(), 1500);
}

TEST(Placement, EndsAWaitForASlotAtItsCap) {
  CoreOptions options;
  options.admission_timeout = absl::Seconds(2);
  S s(options);
  AttachWithSlots(&s, 1, 1);
  s.Submit(1);
  s.Submit(2);
  s.Tick(absl::Milliseconds(1999));
  EXPECT_EQ(s.Heard().rejections_size(), 0);
  s.Tick(absl::Milliseconds(1));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "queue_timeout");
  s.Closed(S::kSmall, 99);  // Nothing is left in the queue.
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 1) << "of the first request";
}

TEST(Placement, CountsTheWaitForAWorkerFromTheLossOfTheLastOne) {
  for (const bool comes_back : {true, false}) {
    S s;
    AttachWithSlots(&s, 1, 1);
    s.Submit(1);
    s.Submit(2);  // Queues for the only slot, longer than it may wait for a worker.
    for (int second = 0; second < 30; ++second) {
      s.Beat(S::kSmall);
      s.Tick(absl::Seconds(1));
    }
    s.WorkerGone(S::kSmall);
    s.Tick(CoreOptions().no_small_worker_timeout - absl::Milliseconds(1));
    EXPECT_EQ(s.Heard().rejections_size(), 0);
    if (comes_back) {
      s.Attach(Role::kSmall, 11);
      EXPECT_EQ(s.Told(11).opens_size(), 2);
      continue;
    }
    s.Tick(absl::Milliseconds(1));
    const wire::SchedulerFrame heard = s.Heard();
    ASSERT_EQ(heard.rejections_size(), 2);
    EXPECT_EQ(heard.rejections(0).reason(), "no_small_worker");
  }
}

TEST(Placement, EvictsAnIdleLargeSideWhenAnotherNeedsTheSlot) {
  S s;
  AttachWithSlots(&s, 8, 1);
  s.Submit(1);
  s.Submit(2);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.Told(S::kLarge);
  s.Send(S::kSmall, S::HandingOff(S::Row(2, 1, 3, {40}), Role::kLarge));
  EXPECT_EQ(s.Told(S::kLarge).closes_size(), 0) << "it is writing";
  s.Send(S::kLarge, S::HandingOff(S::Row(1, 1, 4, {50}, 2), Role::kSmall));
  wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.closes_size(), 1);
  EXPECT_EQ(told.closes(0).request(), 1u);
  s.Closed(S::kLarge, 1);
  told = s.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).request(), 2u);
  // The evicted one comes back with all its ids and a new epoch.
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 5, {41}), Role::kLarge));
  s.Send(S::kLarge, S::HandingOff(S::Row(2, 1, 4, {50}, 2), Role::kSmall));
  s.Closed(S::kLarge, 2);
  told = s.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).request(), 1u);
  EXPECT_EQ(told.opens(0).epoch(), 2u);
  EXPECT_THAT(told.opens(0).ids(), ElementsAre(1, 2, 3, 40, 50, 41));
  EXPECT_EQ(s.core.counters().reopened[Index(Role::kLarge)][Index(ReopenCause::kEvicted)], 1u);
}

TEST(Placement, EvictsNoRequestFromADrainingWorker) {
  S s;
  AttachWithSlots(&s, 8, 1);
  s.Submit(1);
  s.Submit(2);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.Send(S::kLarge, S::HandingOff(S::Row(1, 1, 4, {50}, 2), Role::kSmall));
  ASSERT_TRUE(s.core.DrainWorker("large").ok());
  s.Send(S::kSmall, S::HandingOff(S::Row(2, 1, 3, {40}), Role::kLarge));
  EXPECT_EQ(s.Told(S::kLarge).closes_size(), 0) << "its slot could not be given to any request";
}

TEST(Placement, SpreadsRequestsByLoad) {
  S s;
  s.Attach(Role::kSmall, 10);
  s.Attach(Role::kSmall, 11);
  s.Connect();
  for (uint64_t handle = 1; handle <= 4; ++handle) s.Submit(handle);
  EXPECT_EQ(s.Told(10).opens_size(), 2);
  EXPECT_EQ(s.Told(11).opens_size(), 2);
}

TEST(Placement, SendsADrainingWorkerNoNewRequests) {
  S s;
  s.AttachAll();
  s.Submit(1);
  s.Attach(Role::kSmall, 11);
  s.ForgetFrames();
  ASSERT_TRUE(s.core.DrainWorker("worker-10").ok());
  EXPECT_FALSE(s.core.DrainWorker("unknown").ok());
  s.Submit(2);
  wire::CommandFrame told = s.Told(S::kSmall);
  EXPECT_TRUE(told.drain());
  EXPECT_EQ(told.opens_size(), 0);
  EXPECT_EQ(s.Told(11).opens_size(), 1);
  s.Send(S::kSmall, S::Row(1, 1, 3, {40}));
  EXPECT_EQ(s.Heard().chunks_size(), 1) << "what it has open goes on";
}

TEST(Placement, ChecksTheContextOnceAWorkerHasReportedIt) {
  S s;
  s.Connect();
  wire::Submit submit = S::MakeSubmit(1);
  submit.mutable_spec()->mutable_stop()->set_max_new_tokens(1000);
  s.Submit(submit);
  EXPECT_EQ(s.Heard().rejections_size(), 0);
  s.Attach(Role::kSmall, S::kSmall);
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "context_limit");
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 0);
}

// ---- release policy ----

TEST(Release, FollowsThePolicy) {
  S s(S::WaitingFor(2));
  s.AttachAll();
  for (const uint64_t handle : {1, 2, 3}) s.Submit(handle);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  wire::CommandFrame told = s.Told(S::kLarge);
  EXPECT_EQ(told.opens_size(), 1) << "ids are sent at once";
  EXPECT_EQ(told.releases_size(), 0);
  EXPECT_EQ(s.core.OldestLargeWait(s.now + absl::Seconds(1)), absl::Seconds(1));
  s.Send(S::kSmall, S::HandingOff(S::Row(2, 1, 3, {40}), Role::kLarge));
  EXPECT_THAT(s.Told(S::kLarge).releases(), ElementsAre(1u, 2u));
  EXPECT_EQ(s.core.OldestLargeWait(s.now + absl::Seconds(1)), absl::ZeroDuration());
}

TEST(Release, ForgetsARowThatWasCancelledWhileItWaited) {
  S s(S::WaitingFor(2));
  s.AttachAll();
  for (const uint64_t handle : {1, 2}) s.Submit(handle);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.Cancel(1);
  EXPECT_EQ(s.Told(S::kLarge).closes_size(), 1);
  s.Tick(absl::Milliseconds(10));
  EXPECT_EQ(s.core.requests().size(), 1);
}

// ---- credits ----

TEST(CreditFlow, RaisesWithAcknowledgementsAndUnblocks) {
  CoreOptions options;
  options.credit = 4;
  S s(options);
  s.AttachAll();
  s.Submit(1);
  s.ForgetFrames();
  wire::RowReport row = S::Row(1, 1, 3, {40, 41, 42, 43});
  row.set_credit_blocked(true);
  s.Send(S::kSmall, row);
  s.Ack(1, 4);
  EXPECT_EQ(s.Told(S::kSmall).credits_size(), 0);
  s.Ack(1, 5);
  const wire::CommandFrame told = s.Told(S::kSmall);
  ASSERT_EQ(told.credits_size(), 1);
  EXPECT_EQ(told.credits(0).until(), 5 + 4);
}

TEST(CreditFlow, GoesWithTheGrantToTheOtherSide) {
  CoreOptions options;
  options.credit = 4;
  S s(options);
  s.AttachAll();
  s.Submit(1);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.Send(S::kLarge, S::HandingOff(S::Row(1, 1, 4, {50}, 2), Role::kSmall));
  s.Ack(1, 5);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 5, {41}), Role::kLarge));
  const wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.credits_size(), 1);
  EXPECT_EQ(told.credits(0).until(), 5 + 4);
}

TEST(CreditFlow, DropsAClientThatAcknowledgesNothing) {
  CoreOptions options;
  options.credit = 2;
  options.client_stall = absl::Seconds(2);
  S s(options);
  s.AttachAll();
  s.Submit(1);
  wire::RowReport row = S::Row(1, 1, 3, {40, 41});
  row.set_credit_blocked(true);
  s.Send(S::kSmall, row);
  s.ForgetFrames();
  s.Tick(absl::Milliseconds(1999));
  EXPECT_EQ(s.Heard().rejections_size(), 0);
  s.Tick(absl::Milliseconds(1));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "client_slow");
  EXPECT_EQ(s.Told(S::kSmall).closes_size(), 1);
}

TEST(CreditFlow, HoldsAHandoffWithStopStringsUntilTheClientCaughtUp) {
  S s;
  s.AttachAll();
  wire::Submit submit = S::MakeSubmit(1);
  submit.mutable_spec()->set_string_stops(true);
  s.Submit(submit);
  const std::vector<TokenId> nine(9, 40);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, nine), Role::kLarge));
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 0);
  EXPECT_EQ(s.core.requests().Find(1)->phase(), Phase::kHeld);
  s.Ack(1, 4);
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 1);
}

TEST(CreditFlow, DropsAClientWhoseHandoffIsHeldForTooLong) {
  CoreOptions options;
  options.client_stall = absl::Seconds(2);
  S s(options);
  s.AttachAll();
  wire::Submit submit = S::MakeSubmit(1);
  submit.mutable_spec()->set_string_stops(true);
  s.Submit(submit);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, std::vector<TokenId>(9, 40)), Role::kLarge));
  s.ForgetFrames();
  s.Tick(absl::Seconds(2));
  EXPECT_EQ(s.Heard().rejections_size(), 1);
}

TEST(Deadline, EndsTheRequest) {
  S s;
  s.AttachAll();
  wire::Submit submit = S::MakeSubmit(1);
  submit.mutable_spec()->set_deadline_ms(500);
  s.Submit(submit);
  s.ForgetFrames();
  s.Tick(absl::Milliseconds(499));
  EXPECT_EQ(s.Heard().rejections_size(), 0);
  s.Tick(absl::Milliseconds(1));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "deadline");
}

}  // namespace
}  // namespace tokenrouter
