// Gateways: hellos, duplicates, resubmits, cancels, ends of streams, terms.
#include "services/scheduler/core/gateway_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using S = ScriptedScheduler;

// A gateway's resubmit of a request with two committed tokens.
wire::Submit Resubmit(uint64_t handle) {
  wire::Submit submit = S::MakeSubmit(handle);
  submit.add_ids(40);
  submit.add_ids(50);
  submit.set_authors("\1\2");
  submit.set_state("state");
  submit.set_resumed(true);
  return submit;
}

TEST(Gateway, IsWelcomedWithTheStateOfItsPair) {
  S s;
  s.AttachAll();
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_TRUE(heard.has_welcome());
  EXPECT_EQ(heard.welcome().pair().context_limit(), 256);
  EXPECT_EQ(heard.welcome().pair().usable_ids(), 1000);
  EXPECT_EQ(heard.welcome().pair().small_workers(), 1);
  EXPECT_EQ(heard.welcome().pair().large_model(), "large");
  s.WorkerGone(S::kLarge);
  EXPECT_EQ(s.Heard().pair().large_workers(), 0);
}

TEST(Gateway, OfAnotherProtocolVersionIsRefused) {
  S s;
  wire::GatewayFrame frame;
  frame.mutable_hello()->set_protocol_version(99);
  s.core.OnGatewayFrame(1, frame, s.now);
  EXPECT_THAT(std::string(s.peers.closed_gateways.at(1).message()), HasSubstr("version 99"));
}

TEST(Gateway, GetsADuplicateRefused) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.ForgetFrames();
  wire::Submit again = S::MakeSubmit(8);
  again.mutable_spec()->set_request_id("request-7");
  s.Submit(again);
  wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).code(), static_cast<int>(absl::StatusCode::kAlreadyExists));
  // Another choice of the same request is another request.
  again.mutable_spec()->set_choice(1);
  s.Submit(again);
  EXPECT_EQ(s.Heard().rejections_size(), 0);
  // Once the request has ended, its id may be used again.
  s.Cancel(7);
  s.ForgetFrames();
  wire::Submit later = S::MakeSubmit(9);
  later.mutable_spec()->set_request_id("request-7");
  s.Submit(later);
  EXPECT_EQ(s.Heard().rejections_size(), 0);
}

TEST(Gateway, InventsNoPairsByHellosAndInvalidSubmits) {
  S s;
  s.Connect();
  EXPECT_EQ(s.Heard().welcome().pair().pair(), "pair");
  wire::Submit submit = S::MakeSubmit(1);
  submit.clear_ids();
  s.Submit(submit);
  s.Submit(2, "magic");
  wire::WorkerHello hello = S::Hello(Role::kSmall, "small");
  hello.set_context_limit(0);
  s.Attach(S::kSmall, hello);
  EXPECT_EQ(s.core.directory().pairs(), 0);
}

TEST(Gateway, MayStillUseKnownPairsWhenTheirNumberIsAtItsLimit) {
  CoreOptions options;
  options.max_queued = kMaxPairs;
  S s(options);
  s.AttachAll();
  const auto submit_to = [&s](uint64_t handle, const std::string& pair) {
    wire::Submit submit = S::MakeSubmit(handle);
    submit.mutable_spec()->set_pair(pair);
    s.Submit(submit);
  };
  for (int i = 1; i < kMaxPairs; ++i) submit_to(i, "pair" + std::to_string(i));
  s.ForgetFrames();
  submit_to(5000, "pair");
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 1);
  EXPECT_EQ(s.Heard().rejections_size(), 0);
  submit_to(5001, "another");
  EXPECT_THAT(s.Heard().rejections(0).message(), HasSubstr("another"));
  wire::WorkerHello hello = S::Hello(Role::kSmall, "late");
  hello.set_pair("another");
  s.Attach(11, hello);
  EXPECT_EQ(s.peers.closed_workers.at(11).code(), absl::StatusCode::kResourceExhausted);
}

TEST(Gateway, GetsAnUnknownAlgorithmAndAnEmptyPairRefused) {
  S s;
  s.AttachAll();
  s.ForgetFrames();
  s.Submit(1, "magic");
  EXPECT_THAT(s.Heard().rejections(0).message(), HasSubstr("magic"));
  wire::Submit submit = S::MakeSubmit(2);
  submit.mutable_spec()->clear_pair();
  s.Submit(submit);
  EXPECT_THAT(s.Heard().rejections(0).message(), HasSubstr("unknown pair"));
  EXPECT_EQ(s.core.counters().rejected[Index(RejectReason::kInvalid)], 2u);
}

TEST(Gateway, ResubmitsGoOnFromTheirCommittedIds) {
  S s;
  s.AttachAll();
  s.Submit(Resubmit(7));
  const wire::CommandFrame told = s.Told(S::kSmall);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_THAT(told.opens(0).ids(), ElementsAre(1, 2, 3, 40, 50));
  EXPECT_EQ(told.opens(0).state(), "state");
  const RequestMachine& request = *s.core.requests().Find(1);
  EXPECT_EQ(request.history().written_by(Author::kLarge), 1);
  EXPECT_EQ(request.history().prompt_length(), 3);
  // Acknowledgements say what the client has received.
  EXPECT_EQ(told.opens(0).credit(), 3 + 64);
}

TEST(Gateway, ResubmitsThatHadEndedEndAtOnce) {
  S s;
  s.AttachAll();
  wire::Submit submit = Resubmit(7);
  submit.mutable_spec()->mutable_stop()->set_max_new_tokens(2);
  s.ForgetFrames();
  s.Submit(submit);
  wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.chunks_size(), 1);
  EXPECT_EQ(heard.chunks(0).finish().reason(), api::FINISH_REASON_LENGTH);
  EXPECT_EQ(heard.chunks(0).finish().position(), 5);
  submit = Resubmit(8);
  submit.set_ids(4, 999);  // An end-of-sequence id of the models.
  s.Submit(submit);
  heard = s.Heard();
  ASSERT_EQ(heard.chunks_size(), 1);
  EXPECT_EQ(heard.chunks(0).finish().reason(), api::FINISH_REASON_STOP);
  EXPECT_EQ(s.Told(S::kSmall).opens_size(), 0);
}

TEST(Gateway, ThatIsGoneTakesItsRequestsWithIt) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.ForgetFrames();
  s.core.OnGatewayGone(S::kGateway, s.now);
  s.core.Flush(s.now);
  EXPECT_EQ(s.Told(S::kSmall).closes_size(), 1);
  EXPECT_EQ(s.Told(S::kLarge).closes_size(), 1);
  EXPECT_EQ(s.core.requests().size(), 0);
  EXPECT_EQ(s.core.gateways(), 0);
}

TEST(Gateway, ThatConnectsAgainReplacesItsOldStream) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Connect(2);
  EXPECT_EQ(s.peers.closed_gateways.at(S::kGateway).code(), absl::StatusCode::kAborted);
  s.Submit(Resubmit(7), 2);
  EXPECT_EQ(s.Heard(2).rejections_size(), 0);
  EXPECT_EQ(s.core.requests().size(), 1);
}

TEST(Gateway, CancelsInEveryPhase) {
  const auto reach = [](S* s, Phase phase) {
    wire::Submit submit = S::MakeSubmit(7);
    submit.mutable_spec()->set_string_stops(phase == Phase::kHeld);
    if (phase == Phase::kWaiting) {
      s->WorkerGone(S::kSmall);
    }
    s->Submit(submit);
    const int tokens = phase == Phase::kHeld ? 9 : 1;
    if (phase == Phase::kHeld || phase == Phase::kReleasable) {
      s->Send(S::kSmall,
              S::HandingOff(S::Row(1, 1, 3, std::vector<TokenId>(tokens, 40)), Role::kLarge));
    }
  };
  for (const Phase phase : {Phase::kWaiting, Phase::kHeld, Phase::kReleasable, Phase::kRunning}) {
    CoreOptions options;
    options.batching = {.kind = BatchingPolicy::Kind::kFixedWait, .wait_large_ms = 100};
    S s(options);
    s.AttachAll();
    reach(&s, phase);
    ASSERT_EQ(s.core.requests().Find(1)->phase(), phase);
    s.ForgetFrames();
    s.Cancel(7);
    const wire::SchedulerFrame heard = s.Heard();
    ASSERT_EQ(heard.chunks_size(), 1);
    EXPECT_EQ(heard.chunks(0).finish().reason(), api::FINISH_REASON_CANCELLED);
    EXPECT_EQ(s.core.requests().size(), 0);
    EXPECT_EQ(s.Told(S::kSmall).closes_size(), phase == Phase::kWaiting ? 0 : 1);
    EXPECT_EQ(s.Told(S::kLarge).closes_size(), phase == Phase::kReleasable ? 1 : 0);
    s.Cancel(7);  // A second cancel has no effect.
    EXPECT_EQ(s.Heard().chunks_size(), 0);
    s.Attach(Role::kSmall, 11);
    EXPECT_EQ(s.Told(11).opens_size(), 0) << "no request is left in a queue";
  }
}

wire::GatewayFrame HelloWithTokenizer(const std::string& fingerprint) {
  wire::GatewayFrame frame;
  frame.mutable_hello()->set_gateway_id("gateway with " + fingerprint);
  frame.mutable_hello()->set_protocol_version(kProtocolVersion);
  frame.mutable_hello()->set_pair("pair");
  frame.mutable_hello()->set_tokenizer_fingerprint(fingerprint);
  return frame;
}

TEST(Gateway, WithAnotherTokenizerThanItsPairIsRefused) {
  S s;
  s.AttachAll();
  s.core.OnGatewayFrame(2, HelloWithTokenizer("other"), s.now);
  EXPECT_EQ(s.peers.closed_gateways.at(2).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(s.peers.closed_gateways.at(2).message()),
              HasSubstr("has tokenizer other but pair pair runs with tokenizer"));
  s.core.OnGatewayFrame(3, HelloWithTokenizer("tokenizer"), s.now);
  s.core.OnGatewayFrame(4, HelloWithTokenizer(""), s.now);
  EXPECT_FALSE(s.peers.closed_gateways.contains(3));
  EXPECT_FALSE(s.peers.closed_gateways.contains(4));
}

TEST(Gateway, WithAnotherTokenizerIsHungUpOnWhenAWorkerAttaches) {
  S s;
  s.core.OnGatewayFrame(2, HelloWithTokenizer("other"), s.now);
  s.Connect();
  s.Attach(Role::kSmall, S::kSmall);
  EXPECT_TRUE(s.peers.closed_gateways.contains(2));
  EXPECT_FALSE(s.peers.closed_gateways.contains(S::kGateway));
  EXPECT_EQ(s.core.gateways(), 1);
}

TEST(Gateway, IsToldOfItsOwnPairsRequests) {
  S s;
  s.AttachAll();
  s.Submit(1);
  for (uint64_t handle = 2; handle <= 4; ++handle) {
    wire::Submit submit = S::MakeSubmit(handle);
    submit.mutable_spec()->set_pair("another");
    s.Submit(submit);
  }
  wire::GetStateReply reply;
  s.core.FillState(s.now, &reply);
  ASSERT_EQ(reply.pairs_size(), 2);
  EXPECT_EQ(reply.pairs(0).running(), 1);
  EXPECT_EQ(reply.pairs(0).queued(), 0);
  EXPECT_EQ(reply.pairs(1).running(), 0);
  EXPECT_EQ(reply.pairs(1).queued(), 3);
}

TEST(Gateway, GetsTooManyRequestsRefusedBeforeTheyAreRead) {
  CoreOptions options;
  options.max_requests = 1;
  S s(options);
  s.AttachAll();
  s.Submit(1);
  s.ForgetFrames();
  s.Submit(2, "magic");
  EXPECT_EQ(s.Heard().rejections(0).reason(), "max_requests");
}

TEST(Gateway, IsToldARetryTimeThatFollowsTheQueueAndKeepsRequestsApart) {
  CoreOptions options;
  options.max_queued = 20;
  S s(options);
  s.AttachAll();
  for (uint64_t handle = 1; handle <= 6; ++handle) {  // One ends each second.
    s.Submit(handle);
    s.Tick(absl::Seconds(1));
    s.Cancel(handle);
    s.Beat(S::kSmall);
    s.Beat(S::kLarge);
  }
  s.WorkerGone(S::kSmall);
  for (uint64_t handle = 100; handle < 120; ++handle) s.Submit(handle);
  s.ForgetFrames();
  s.Submit(200);
  s.Submit(201);
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 2);
  EXPECT_EQ(heard.rejections(0).reason(), "queue_full");
  EXPECT_GE(heard.rejections(0).retry_after_ms(), 20'000);
  EXPECT_LE(heard.rejections(0).retry_after_ms(), 30'000);
  EXPECT_NE(heard.rejections(0).retry_after_ms(), heard.rejections(1).retry_after_ms());
}

TEST(Term, ThatNobodyCanHaveHeardIsRefused) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Connect(2, "other", ~uint64_t{0});
  EXPECT_EQ(s.peers.closed_gateways.at(2).code(), absl::StatusCode::kFailedPrecondition);
  wire::WorkerHello hello = S::Hello(Role::kSmall, "small");
  hello.set_highest_term(S::kTerm + CoreOptions().max_term_lead + 1);
  s.Attach(11, hello);
  EXPECT_EQ(s.peers.closed_workers.at(11).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(s.core.term(), S::kTerm);
  EXPECT_EQ(s.core.requests().size(), 1);
}

TEST(Term, IsRaisedAboveWhatAPeerHasHeard) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.ForgetFrames();
  s.Connect(2, "other", S::kTerm + 5);
  EXPECT_EQ(s.core.term(), S::kTerm + 6);
  EXPECT_EQ(s.core.requests().size(), 0);
  EXPECT_TRUE(s.peers.closed_workers.contains(S::kSmall));
  EXPECT_TRUE(s.peers.closed_workers.contains(S::kLarge));
  EXPECT_TRUE(s.peers.closed_gateways.contains(S::kGateway));
  ASSERT_EQ(s.peers.gateway_frames[2].size(), 1u);
  EXPECT_EQ(s.peers.gateway_frames[2][0].term(), S::kTerm + 6);
  // A reconnect under the current term changes nothing.
  s.Connect(3, "third", s.core.term());
  EXPECT_EQ(s.core.term(), S::kTerm + 6);
}

TEST(State, ShowsWorkersAndPairs) {
  S s;
  s.AttachAll();
  s.Submit(7);
  wire::GetStateReply reply;
  s.core.FillState(s.now + absl::Seconds(1), &reply);
  EXPECT_EQ(reply.term(), S::kTerm);
  ASSERT_EQ(reply.workers_size(), 2);
  EXPECT_EQ(reply.workers(0).worker_id(), "worker-10");
  EXPECT_EQ(reply.workers(0).sequences(), 1);
  EXPECT_EQ(reply.workers(0).since_heartbeat_seconds(), 1.0);
  ASSERT_EQ(reply.pairs_size(), 1);
  EXPECT_EQ(reply.pairs(0).running(), 1);
}

TEST(Gateway, HoldsTheIdsOfLiveRequestsAgainstTheLimit) {
  CoreOptions options;
  options.max_ids = 2 * 103 + 1;
  S s(options);
  s.AttachAll();
  for (uint64_t handle = 1; handle <= 2; ++handle) s.Submit(handle);  // 3 + 100 ids each.
  EXPECT_EQ(s.Heard().rejections_size(), 0);
  s.Submit(3);
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "max_ids");
  EXPECT_EQ(heard.rejections(0).code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_GT(heard.rejections(0).retry_after_ms(), 0);
  wire::Submit resumed = S::MakeSubmit(4);
  resumed.set_resumed(true);
  s.Submit(resumed);
  EXPECT_EQ(s.Heard().rejections_size(), 0) << "it was admitted before";
  s.Cancel(1);
  s.Cancel(2);
  s.Submit(5);
  EXPECT_EQ(s.Heard().rejections_size(), 0) << "what ends gives its ids back";
}

}  // namespace
}  // namespace tokenrouter
