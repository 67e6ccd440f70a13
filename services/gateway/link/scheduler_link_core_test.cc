#include "services/gateway/link/scheduler_link_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/timing/redial_wait.h"
#include "libs/tokens/frame_limit.h"
#include "libs/tokens/protocol_version.h"
#include "services/gateway/errors/api_error.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kTerm = 100;

class SchedulerLinkCoreTest : public ::testing::Test {
 protected:
  static LinkOptions Options() {
    LinkOptions options;
    options.gateway_id = "g";
    options.pair = "default";
    return options;
  }

  void Advance(absl::Duration step) { now_ += step; }

  // Dials, greets and lets the scheduler of `term` answer.
  void ConnectTo(uint64_t term) {
    ASSERT_TRUE(core_.TakeDial(now_));
    core_.OnConnected();
    const auto hello = core_.TakeFrame(now_);
    ASSERT_TRUE(hello.has_value() && hello->has_hello());
    core_.OnFrame(Welcome(term), now_);
  }

  static wire::SchedulerFrame Welcome(uint64_t term) {
    wire::SchedulerFrame frame;
    frame.set_term(term);
    frame.mutable_welcome()->set_protocol_version(kProtocolVersion);
    frame.mutable_welcome()->mutable_pair()->set_small_workers(1);
    return frame;
  }

  void Submit(uint64_t handle, std::vector<int32_t> prompt = {1, 2, 3}) {
    wire::GenerationSpec spec;
    spec.set_prompt_length(static_cast<int32_t>(prompt.size()));
    core_.requests().Submit(handle, spec, std::move(prompt), now_);
  }

  void Deliver(uint64_t handle, int32_t base, std::vector<int32_t> ids, bool finish = false,
               uint64_t term = kTerm) {
    wire::SchedulerFrame frame;
    frame.set_term(term);
    wire::TokenChunk* chunk = frame.add_chunks();
    chunk->set_handle(handle);
    chunk->set_base_position(base);
    chunk->mutable_ids()->Add(ids.begin(), ids.end());
    chunk->set_authors(std::string(ids.size(), '\1'));
    chunk->set_state("s");
    if (!finish && grant_tokens_ > 0) {
      chunk->mutable_grant()->set_role(api::ROLE_LARGE);
      chunk->mutable_grant()->mutable_window()->set_tokens(grant_tokens_);
    }
    if (finish) {
      chunk->mutable_finish()->set_position(base + static_cast<int32_t>(ids.size()));
      chunk->mutable_finish()->set_reason(api::FINISH_REASON_STOP);
    }
    core_.OnFrame(frame, now_);
  }

  void Reject(uint64_t handle, absl::StatusCode code) {
    wire::SchedulerFrame frame;
    frame.set_term(kTerm);
    wire::Rejection* rejection = frame.add_rejections();
    rejection->set_handle(handle);
    rejection->set_code(static_cast<int>(code));
    rejection->set_message("no");
    rejection->set_reason("queue_full");
    rejection->set_retry_after_ms(1500);
    core_.OnFrame(frame, now_);
  }

  int32_t grant_tokens_ = 0;  // Of the window that chunks tell of; 0: they tell of none.
  SchedulerLinkCore core_{Options()};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(SchedulerLinkCoreTest, SubmitsOnlyAfterTheWelcomeAndWithItsTerm) {
  Submit(1);
  EXPECT_FALSE(core_.TakeFrame(now_).has_value());
  ConnectTo(kTerm);
  EXPECT_TRUE(core_.connection().up());
  const auto frame = core_.TakeFrame(now_);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->term(), kTerm);
  ASSERT_EQ(frame->submits_size(), 1);
  EXPECT_THAT(frame->submits(0).ids(), ElementsAre(1, 2, 3));
  EXPECT_FALSE(frame->submits(0).resumed());
  EXPECT_FALSE(core_.TakeFrame(now_).has_value());
}

TEST_F(SchedulerLinkCoreTest, DeliversChunksInOrderAndEndsWithTheFinish) {
  ConnectTo(kTerm);
  Submit(1);
  core_.TakeFrame(now_);
  Deliver(1, 3, {7});
  Deliver(1, 4, {8, 9}, /*finish=*/true);
  const std::vector<LinkEvent> events = core_.TakeEvents();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_THAT(events[1].tokens, ElementsAre(TokenRecord{.id = 8}, TokenRecord{.id = 9}));
  EXPECT_EQ(events[1].finish->position(), 6);
  EXPECT_EQ(core_.requests().live(), 0u);
}

TEST_F(SchedulerLinkCoreTest, DropsAndCountsWhatDoesNotFit) {
  ConnectTo(kTerm);
  Submit(1);
  core_.TakeFrame(now_);
  Deliver(1, 3, {7});
  Deliver(1, 3, {7});
  Deliver(1, 9, {7});
  Deliver(2, 3, {7});
  Deliver(1, 4, {7}, false, kTerm - 1);
  EXPECT_EQ(core_.TakeEvents().size(), 1u);
  EXPECT_EQ(core_.counters().dropped_duplicate, 1u);
  EXPECT_EQ(core_.counters().dropped_gap, 1u);
  EXPECT_EQ(core_.counters().dropped_unknown, 1u);
  EXPECT_EQ(core_.counters().dropped_term, 1u);
}

TEST_F(SchedulerLinkCoreTest, AcknowledgementsAreCumulativeAndAtMostOncePerInterval) {
  ConnectTo(kTerm);
  Submit(1);
  Advance(absl::Seconds(1));
  core_.TakeFrame(now_);
  Deliver(1, 3, {7, 8, 9});
  core_.requests().Acknowledge(1, 4);
  auto frame = core_.TakeFrame(now_);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->acks(0).position(), 4);
  core_.requests().Acknowledge(1, 5);
  core_.requests().Acknowledge(1, 99);
  EXPECT_FALSE(core_.TakeFrame(now_).has_value());
  EXPECT_EQ(core_.NextDeadline(), now_ + absl::Milliseconds(2));
  Advance(absl::Milliseconds(2));
  frame = core_.TakeFrame(now_);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->acks(0).position(), 6) << "never beyond what was committed";
  EXPECT_EQ(core_.NextDeadline(), absl::InfiniteFuture());
}

TEST_F(SchedulerLinkCoreTest, CancelIsSentAtOnceAndLateChunksAreDropped) {
  ConnectTo(kTerm);
  Submit(1);
  core_.TakeFrame(now_);
  core_.requests().Cancel(1);
  const auto frame = core_.TakeFrame(now_);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->cancels(0).handle(), 1u);
  Deliver(1, 3, {7});
  EXPECT_TRUE(core_.TakeEvents().empty());
}

TEST_F(SchedulerLinkCoreTest, CancelBeforeTheSubmitSendsNothing) {
  Submit(1);
  core_.requests().Cancel(1);
  ConnectTo(kTerm);
  EXPECT_FALSE(core_.TakeFrame(now_).has_value());
}

TEST_F(SchedulerLinkCoreTest, FinishFoundByTheGatewayTravels) {
  ConnectTo(kTerm);
  Submit(1);
  core_.TakeFrame(now_);
  wire::Finish finish;
  finish.set_position(5);
  core_.requests().Finish(1, finish);
  const auto frame = core_.TakeFrame(now_);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->finishes(0).finish().position(), 5);
  EXPECT_EQ(core_.requests().live(), 0u);
}

TEST_F(SchedulerLinkCoreTest, ResubmitsEverythingLiveAfterALoss) {
  ConnectTo(kTerm);
  Submit(1);
  core_.TakeFrame(now_);
  Deliver(1, 3, {7, 8});
  core_.requests().Acknowledge(1, 4);
  core_.OnDisconnected(now_);
  EXPECT_FALSE(core_.TakeDial(now_)) << "backs off first";
  Advance(absl::Milliseconds(50));
  ConnectTo(kTerm + 1);
  Advance(absl::Milliseconds(2));
  const auto frame = core_.TakeFrame(now_);
  ASSERT_TRUE(frame.has_value());
  const wire::Submit& submit = frame->submits(0);
  EXPECT_TRUE(submit.resumed());
  EXPECT_THAT(submit.ids(), ElementsAre(1, 2, 3, 7, 8));
  EXPECT_EQ(submit.authors(), "\1\1");
  EXPECT_EQ(submit.state(), "s");
  EXPECT_EQ(frame->acks(0).position(), 4);
  EXPECT_EQ(core_.counters().resubmitted, 1u);
  Deliver(1, 3, {7}, false, kTerm + 1);
  EXPECT_EQ(core_.counters().dropped_duplicate, 1u);
}

TEST_F(SchedulerLinkCoreTest, SubmitsManyRequestsInFramesThatFit) {
  // Small prompts, large specs: it is not only ids that fill a frame.
  wire::GenerationSpec spec;
  spec.set_prompt_length(1);
  for (int i = 0; i < 2048; ++i) spec.mutable_stop()->add_stop_ids(150000 + i);
  constexpr uint64_t kRequests = 2000;
  for (uint64_t handle = 1; handle <= kRequests; ++handle) {
    core_.requests().Submit(handle, spec, {1}, now_);
  }
  ConnectTo(kTerm);
  uint64_t submitted = 0;
  for (auto frame = core_.TakeFrame(now_); frame; frame = core_.TakeFrame(now_)) {
    EXPECT_LE(frame->ByteSizeLong(), kMaxFrameBytes);
    for (const wire::Submit& submit : frame->submits()) EXPECT_EQ(submit.handle(), ++submitted);
  }
  EXPECT_EQ(submitted, kRequests);
}

TEST_F(SchedulerLinkCoreTest, ResubmitsTheDecodeGrantThatItHeardLast) {
  ConnectTo(kTerm);
  Submit(1);
  Submit(2);
  EXPECT_FALSE(core_.TakeFrame(now_)->submits(0).has_grant());
  grant_tokens_ = 4;
  Deliver(1, 3, {7});
  Deliver(2, 3, {7});
  grant_tokens_ = 3;
  Deliver(1, 4, {8});
  grant_tokens_ = 0;
  Deliver(2, 4, {8});
  core_.OnDisconnected(now_);
  Advance(absl::Milliseconds(50));
  ConnectTo(kTerm + 1);
  const auto frame = core_.TakeFrame(now_);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->submits(0).grant().role(), api::ROLE_LARGE);
  EXPECT_EQ(frame->submits(0).grant().window().tokens(), 3);
  EXPECT_EQ(frame->submits(1).grant().window().tokens(), 4) << "a chunk without one: as before";
}

TEST_F(SchedulerLinkCoreTest, ForgetsAGrantThatItsSchedulerDoesNotTellOf) {
  ConnectTo(kTerm);
  Submit(1);
  core_.TakeFrame(now_);
  grant_tokens_ = 4;
  Deliver(1, 3, {7});
  core_.OnDisconnected(now_);
  Advance(absl::Milliseconds(50));
  ConnectTo(kTerm + 1);
  EXPECT_TRUE(core_.TakeFrame(now_)->submits(0).has_grant());
  grant_tokens_ = 0;  // Of an older version, whose chunks never carry one.
  Deliver(1, 4, {8}, /*finish=*/false, kTerm + 1);
  core_.OnDisconnected(now_);
  Advance(absl::Milliseconds(50));
  ConnectTo(kTerm + 2);
  EXPECT_FALSE(core_.TakeFrame(now_)->submits(0).has_grant()) << "that of an earlier chunk";
}

TEST_F(SchedulerLinkCoreTest, RejectionCarriesReasonAndRetryTime) {
  ConnectTo(kTerm);
  Submit(1);
  core_.TakeFrame(now_);
  Reject(1, absl::StatusCode::kResourceExhausted);
  const std::vector<LinkEvent> events = core_.TakeEvents();
  ASSERT_EQ(events.size(), 1u);
  const ApiError error = ToApiError(events[0].error);
  EXPECT_EQ(error.http_status, 429);
  EXPECT_EQ(error.code, "queue_full");
  EXPECT_EQ(error.retry_after, absl::Milliseconds(1500));
}

TEST_F(SchedulerLinkCoreTest, ADuplicateEndsANewRequestButDelaysAResubmit) {
  ConnectTo(kTerm);
  Submit(1);
  core_.TakeFrame(now_);
  core_.OnDisconnected(now_);
  Advance(absl::Milliseconds(50));
  ConnectTo(kTerm);
  core_.TakeFrame(now_);
  Submit(2);
  core_.TakeFrame(now_);
  Reject(1, absl::StatusCode::kAlreadyExists);
  Reject(2, absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(core_.TakeEvents().size(), 1u);
  Advance(absl::Milliseconds(200));
  const auto frame = core_.TakeFrame(now_);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->submits(0).handle(), 1u);
}

TEST_F(SchedulerLinkCoreTest, WaitsForALinkOnlySoLong) {
  Submit(1);
  Advance(absl::Seconds(5));
  core_.Tick(now_);
  const std::vector<LinkEvent> events = core_.TakeEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(ToApiError(events[0].error).http_status, 503);
  EXPECT_EQ(ToApiError(events[0].error).code, "no_scheduler");
}

TEST_F(SchedulerLinkCoreTest, AResubmitSaysWhatIsLeftOfTheDeadline) {
  ConnectTo(kTerm);
  wire::GenerationSpec spec;
  spec.set_prompt_length(1);
  spec.set_deadline_ms(3000);
  core_.requests().Submit(7, spec, {1}, now_);
  EXPECT_EQ(core_.TakeFrame(now_)->submits(0).spec().deadline_ms(), 3000);
  Advance(absl::Milliseconds(1000));
  core_.OnDisconnected(now_);
  Advance(absl::Microseconds(500'100));
  ConnectTo(kTerm + 1);
  EXPECT_EQ(core_.TakeFrame(now_)->submits(0).spec().deadline_ms(), 1500) << "never less";
}

TEST_F(SchedulerLinkCoreTest, ADeadlineEndsARequestThatWaitsForALink) {
  ConnectTo(kTerm);
  wire::GenerationSpec spec;
  spec.set_prompt_length(1);
  spec.set_deadline_ms(3000);
  core_.requests().Submit(7, spec, {1}, now_);
  ASSERT_TRUE(core_.TakeFrame(now_).has_value());
  core_.OnDisconnected(now_);
  Advance(absl::Milliseconds(2999));
  core_.Tick(now_);
  EXPECT_TRUE(core_.TakeEvents().empty());
  EXPECT_LE(core_.NextDeadline(), now_ + absl::Milliseconds(1));
  Advance(absl::Milliseconds(1));
  core_.Tick(now_);
  const auto events = core_.TakeEvents();
  ASSERT_EQ(events.size(), 1);
  EXPECT_EQ(events[0].error.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(ToApiError(events[0].error).code, "deadline");
}

TEST_F(SchedulerLinkCoreTest, BackoffGrowsToItsCapAndStartsOverAfterAWelcome) {
  absl::Duration last = absl::ZeroDuration();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(core_.TakeDial(now_));
    core_.OnDisconnected(now_);
    last = core_.NextDeadline() - now_;
    EXPECT_EQ(last, RedialWait("g", i));
    Advance(last);
  }
  EXPECT_GE(last, kLongestRedial / 2);
  ConnectTo(kTerm);
  core_.OnDisconnected(now_);
  EXPECT_EQ(core_.NextDeadline() - now_, RedialWait("g", 0));
}

TEST_F(SchedulerLinkCoreTest, RefusesASchedulerOfAnOlderTerm) {
  ConnectTo(kTerm);
  core_.OnDisconnected(now_);
  Advance(absl::Seconds(1));
  ConnectTo(kTerm - 1);
  EXPECT_FALSE(core_.connection().up());
  EXPECT_TRUE(core_.TakeHangUp());
  EXPECT_FALSE(core_.TakeHangUp());
}

TEST_F(SchedulerLinkCoreTest, EndsARequestWhoseChunksAreMalformedOrOverrunCredit) {
  ConnectTo(kTerm);
  Submit(1);
  Submit(2);
  core_.TakeFrame(now_);
  wire::SchedulerFrame frame;
  frame.set_term(kTerm);
  wire::TokenChunk* chunk = frame.add_chunks();
  chunk->set_handle(1);
  chunk->set_base_position(3);
  chunk->add_ids(5);
  core_.OnFrame(frame, now_);
  Deliver(2, 3, std::vector<int32_t>(5000, 1));
  Submit(3);
  core_.TakeFrame(now_);
  chunk->set_handle(3);
  chunk->set_authors("\3");
  core_.OnFrame(frame, now_);
  const std::vector<LinkEvent> events = core_.TakeEvents();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].error.code(), absl::StatusCode::kInternal) << "an id without an author";
  EXPECT_EQ(events[1].error.code(), absl::StatusCode::kInternal) << "beyond all credit";
  EXPECT_EQ(events[2].error.code(), absl::StatusCode::kInternal) << "an author that is no model";
  EXPECT_EQ(core_.TakeFrame(now_)->cancels_size(), 1);
}

}  // namespace
}  // namespace tokenrouter
