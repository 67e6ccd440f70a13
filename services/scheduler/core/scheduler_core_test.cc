// The life of one request through the core, and which messages are dropped on the way.
#include "services/scheduler/core/scheduler_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using S = ScriptedScheduler;

TEST(SchedulerCore, OpensOnASmallWorkerWithTheWholeHistory) {
  S s;
  s.AttachAll();
  s.Submit(7);
  const wire::CommandFrame told = s.Told(S::kSmall);
  ASSERT_EQ(told.opens_size(), 1);
  const wire::Open& open = told.opens(0);
  EXPECT_EQ(open.epoch(), 1u);
  EXPECT_THAT(open.ids(), ElementsAre(1, 2, 3));
  EXPECT_EQ(open.tail(), 0);
  EXPECT_EQ(open.grant().window().kind(), wire::Window::KIND_UNTIL_END);
  EXPECT_EQ(open.credit(), 3 + 64);
  EXPECT_EQ(told.term(), S::kTerm);
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 0);
}

TEST(SchedulerCore, StreamsCommittedTokensWithAuthorsAndState) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.ForgetFrames();
  s.Send(S::kSmall, S::Row(1, 1, 3, {40, 41}));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.chunks_size(), 1);
  EXPECT_EQ(heard.chunks(0).handle(), 7u);
  EXPECT_EQ(heard.chunks(0).base_position(), 3);
  EXPECT_THAT(heard.chunks(0).ids(), ElementsAre(40, 41));
  EXPECT_EQ(heard.chunks(0).authors(), "\1\1");
  EXPECT_THAT(heard.chunks(0).entropies(), ElementsAre(0.5f, 0.5f));
  EXPECT_EQ(heard.chunks(0).state(), "state");
  EXPECT_EQ(s.core.counters().tokens[Index(Author::kSmall)], 2u);
}

TEST(SchedulerCore, CountsTheRequestsThatPrefillTheirPrompt) {
  S s;
  s.AttachAll();
  EXPECT_EQ(s.core.requests().reading(0), 0);
  for (const uint64_t handle : {7, 8, 9}) s.Submit(handle);
  EXPECT_EQ(s.core.requests().reading(0), 3);
  s.Send(S::kSmall, S::Row(1, 1, 3, {40, 41}));
  s.Send(S::kSmall, S::Row(1, 1, 5, {42}));
  EXPECT_EQ(s.core.requests().reading(0), 2);
  s.Cancel(8);
  EXPECT_EQ(s.core.requests().reading(0), 1);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 6, {43}), Role::kLarge));
  EXPECT_EQ(s.core.requests().reading(0), 2) << "the large side has not prefilled it";
  s.Send(S::kLarge, S::Row(1, 1, 7, {44}, 2));
  EXPECT_EQ(s.core.requests().reading(0), 1);
  s.WorkerGone(S::kSmall);
  EXPECT_EQ(s.core.requests().reading(0), 1);
}

TEST(SchedulerCore, ReportsWithTheFirstIdsHowMuchOfThePromptWasCachedWhereItOpened) {
  S s;
  s.AttachAll();
  s.Submit(7);
  wire::RowReport opening = S::HandingOff(S::Row(1, 1, 3, {}), Role::kLarge);
  opening.set_cached_ids(2);
  s.Send(S::kSmall, opening);
  s.ForgetFrames();
  wire::RowReport large = S::Row(1, 1, 3, {40}, 2);
  // The cache of the other side does not count, as it did not write first.
  large.set_cached_ids(1);
  s.Send(S::kLarge, large);
  s.Send(S::kLarge, S::Row(1, 1, 4, {41}, 2));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.chunks_size(), 2);
  EXPECT_EQ(heard.chunks(0).cached_tokens(), 2);
  EXPECT_EQ(heard.chunks(1).cached_tokens(), 0);
}

TEST(SchedulerCore, HandsTheGrantOverAndBackWithOnlyUnknownIds) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  wire::CommandFrame large = s.Told(S::kLarge);
  ASSERT_EQ(large.opens_size(), 1);
  EXPECT_THAT(large.opens(0).ids(), ElementsAre(1, 2, 3, 40));
  EXPECT_THAT(large.releases(), ElementsAre(1u));

  s.ForgetFrames();
  s.Send(S::kLarge, S::HandingOff(S::Row(1, 1, 4, {50}, 2), Role::kSmall));
  wire::CommandFrame small = s.Told(S::kSmall);
  ASSERT_EQ(small.extends_size(), 1);
  EXPECT_EQ(small.extends(0).base(), 4);
  EXPECT_THAT(small.extends(0).ids(), ElementsAre(50));
  EXPECT_EQ(small.releases_size(), 0);

  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 5, {41, 42}), Role::kLarge));
  large = s.Told(S::kLarge);
  EXPECT_EQ(large.opens_size(), 0);
  ASSERT_EQ(large.extends_size(), 1);
  EXPECT_EQ(large.extends(0).base(), 5);
  EXPECT_THAT(large.extends(0).ids(), ElementsAre(41, 42));
  EXPECT_THAT(large.releases(), ElementsAre(1u));
  EXPECT_EQ(s.core.counters().handoffs[Index(Role::kLarge)], 2u);
}

TEST(SchedulerCore, TakesATentativeTailToBeVerifiedAndTruncatesTheOtherSide) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {}), Role::kLarge, {60, 61, 62}));
  const wire::CommandFrame large = s.Told(S::kLarge);
  ASSERT_EQ(large.opens_size(), 1);
  EXPECT_THAT(large.opens(0).ids(), ElementsAre(1, 2, 3, 60, 61, 62));
  EXPECT_EQ(large.opens(0).tail(), 3);
  EXPECT_EQ(large.opens(0).grant().verify(), 3);
  // One draft is kept, the second is replaced.
  s.ForgetFrames();
  s.Send(S::kLarge, S::HandingOff(S::Row(1, 1, 3, {60, 70}, 2), Role::kSmall));
  const wire::CommandFrame small = s.Told(S::kSmall);
  ASSERT_EQ(small.extends_size(), 1);
  EXPECT_EQ(small.extends(0).base(), 4);
  EXPECT_THAT(small.extends(0).ids(), ElementsAre(70));
  EXPECT_EQ(small.extends(0).tail(), 0);
}

TEST(SchedulerCore, ClosesBothSidesAndEndsTheStreamAtTheFinish) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.Send(S::kLarge, S::HandingOff(S::Row(1, 1, 4, {50}, 2), Role::kSmall));
  s.ForgetFrames();
  s.Send(S::kSmall, S::Finished(S::Row(1, 1, 5, {999}), 6));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.chunks_size(), 1);
  EXPECT_THAT(heard.chunks(0).ids(), ElementsAre(999));
  EXPECT_EQ(heard.chunks(0).finish().position(), 6);
  EXPECT_EQ(heard.chunks(0).finish().reason(), api::FINISH_REASON_STOP);
  EXPECT_EQ(s.Told(S::kSmall).closes_size(), 1);
  EXPECT_EQ(s.Told(S::kLarge).closes_size(), 1);
  EXPECT_EQ(s.core.requests().size(), 0);
}

TEST(SchedulerCore, EndsAtMaxNewTokensThoughTheWorkerWentOn) {
  S s;
  s.AttachAll();
  wire::Submit submit = S::MakeSubmit(7);
  submit.mutable_spec()->mutable_stop()->set_max_new_tokens(2);
  s.Submit(submit);
  s.ForgetFrames();
  s.Send(S::kSmall, S::Row(1, 1, 3, {40, 41, 42}));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.chunks_size(), 1);
  EXPECT_THAT(heard.chunks(0).ids(), ElementsAre(40, 41));
  EXPECT_EQ(heard.chunks(0).authors().size(), 2u);
  EXPECT_EQ(heard.chunks(0).finish().reason(), api::FINISH_REASON_LENGTH);
  EXPECT_EQ(s.core.counters().overrun_tokens[Index(Author::kSmall)], 1u);
}

TEST(SchedulerCore, LetsTheSmallestFinishPositionOfTheGatewayWin) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::Row(1, 1, 3, {40, 41, 42}));
  s.ForgetFrames();
  wire::GatewayFrame frame;
  wire::GatewayFinish* const end = frame.add_finishes();
  end->set_handle(7);
  end->mutable_finish()->set_position(4);
  end->mutable_finish()->set_reason(api::FINISH_REASON_STOP);
  s.ToCore(S::kGateway, frame);
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.chunks_size(), 1);
  EXPECT_EQ(heard.chunks(0).ids_size(), 0);
  EXPECT_EQ(heard.chunks(0).finish().position(), 4);
  EXPECT_EQ(s.core.counters().overrun_tokens[Index(Author::kSmall)], 2u);
  EXPECT_EQ(s.Told(S::kSmall).closes_size(), 1);
}

// ---- dropped messages ----

TEST(SchedulerCore, DropsARowOfAnOldEpoch) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.ForgetFrames();
  s.Send(S::kSmall, S::Row(1, 0, 3, {40}));
  EXPECT_EQ(s.Heard().chunks_size(), 0);
  EXPECT_EQ(s.Dropped(DropReason::kEpoch), 1u);
}

TEST(SchedulerCore, DropsARowOfTheSideWithoutTheGrant) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.ForgetFrames();
  s.Send(S::kSmall, S::Row(1, 1, 4, {41}));
  EXPECT_EQ(s.Heard().chunks_size(), 0);
  EXPECT_EQ(s.Dropped(DropReason::kNotGranted), 1u);
}

TEST(SchedulerCore, ReopensASideWhoseRowsDoNotFitTheHistory) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::Row(1, 1, 3, {40}));
  s.ForgetFrames();
  s.Send(S::kSmall, S::Row(1, 1, 3, {40}));  // A duplicate.
  EXPECT_EQ(s.Heard().chunks_size(), 0);
  EXPECT_EQ(s.Dropped(DropReason::kBase), 1u);
  const wire::CommandFrame told = s.Told(S::kSmall);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).epoch(), 2u);
  EXPECT_THAT(told.opens(0).ids(), ElementsAre(1, 2, 3, 40));
  s.Send(S::kSmall, S::Row(1, 2, 4, {41}));
  EXPECT_EQ(s.Heard().chunks_size(), 1);
}

TEST(SchedulerCore, IgnoresALateCreditBlockedReport) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::Row(1, 1, 3, {40}));
  s.ForgetFrames();
  wire::RowReport credit_blocked = S::Row(1, 1, 3, {});
  credit_blocked.set_credit_blocked(true);
  s.Send(S::kSmall, credit_blocked);
  EXPECT_EQ(s.Dropped(DropReason::kBase), 1u);
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 0);
}

TEST(SchedulerCore, GivesUpOnAWorkerThatNeverFits) {
  CoreOptions options;
  options.max_reopens = 2;
  S s(options);
  s.AttachAll();
  s.Submit(7);
  s.ForgetFrames();
  for (uint32_t epoch = 1; epoch <= 3; ++epoch) s.Send(S::kSmall, S::Row(1, epoch, 99, {40}));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "reopen_limit");
  EXPECT_EQ(s.Told(S::kSmall).closes_size(), 1);
}

TEST(SchedulerCore, DropsMalformedRows) {
  S s;
  s.AttachAll();
  s.Submit(7);
  wire::RowReport row = S::Row(1, 1, 3, {40});
  row.set_authors("\1\1");
  s.Send(S::kSmall, row);
  row = S::Row(1, 2, 3, {40}, 3);
  s.Send(S::kSmall, row);
  row = S::Row(1, 3, 3, {40});
  row.mutable_handoff();  // It names no side.
  s.Send(S::kSmall, row);
  row = S::Row(1, 4, 3, {40});
  row.set_state(std::string(65, 'x'));
  s.Send(S::kSmall, row);
  EXPECT_EQ(s.Dropped(DropReason::kMalformed), 4u);
  EXPECT_EQ(s.core.requests().Find(1)->history().committed(), 3);
}

TEST(SchedulerCore, DropsFramesOfAnotherTermAndRowsOfEndedRequests) {
  S s;
  s.AttachAll();
  s.Submit(7);
  wire::WorkerFrame frame;
  *frame.add_rows() = S::Row(1, 1, 3, {40});
  frame.set_term(S::kTerm - 1);
  s.ToCoreAsIs(S::kSmall, frame);
  EXPECT_EQ(s.Dropped(DropReason::kTerm), 1u);
  s.Cancel(7);
  s.Send(S::kSmall, S::Row(1, 1, 3, {40}));
  EXPECT_EQ(s.Dropped(DropReason::kUnknownRequest), 1u);
}

TEST(SchedulerCore, SendsAllIdsBeyondWhatTheWorkerSaysItHas) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.ForgetFrames();
  wire::WorkerFrame frame;
  wire::NeedIds* const need = frame.add_need_ids();
  need->set_request(1);
  need->set_epoch(1);
  need->set_have(2);
  s.ToCore(S::kLarge, frame);
  wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.extends_size(), 1);
  EXPECT_EQ(told.extends(0).base(), 2);
  EXPECT_THAT(told.extends(0).ids(), ElementsAre(3, 40));
  EXPECT_TRUE(told.extends(0).has_grant());
  EXPECT_THAT(told.releases(), ElementsAre(1u));
  // A sequence that the worker does not have at all needs an Open.
  frame.mutable_need_ids(0)->set_have(0);
  s.ToCore(S::kLarge, frame);
  told = s.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).epoch(), 2u);
}

TEST(SchedulerCore, ClosesAStreamThatDoesNotBeginWithAHello) {
  S s;
  s.AttachAll();
  s.Send(99, S::Row(1, 1, 3, {40}));
  EXPECT_EQ(s.peers.closed_workers.at(99).code(), absl::StatusCode::kFailedPrecondition);
  s.Attach(Role::kSmall, S::kSmall);  // A second hello on one stream.
  EXPECT_EQ(s.peers.closed_workers.at(S::kSmall).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(s.core.directory().workers().size(), 1u);
}

TEST(SchedulerCore, BatchesEverythingOfOneInputIntoOneFramePerPeer) {
  S s;
  s.AttachAll();
  for (uint64_t handle = 1; handle <= 4; ++handle) s.Submit(handle);
  s.ForgetFrames();
  wire::WorkerFrame frame;
  for (uint64_t key = 1; key <= 4; ++key) *frame.add_rows() = S::Row(key, 1, 3, {40});
  s.ToCore(S::kSmall, frame);
  ASSERT_EQ(s.peers.gateway_frames[S::kGateway].size(), 1u);
  EXPECT_EQ(s.peers.gateway_frames[S::kGateway][0].chunks_size(), 4);
}

}  // namespace
}  // namespace tokenrouter
