// Requests that take their workers down: how many, and what becomes of their neighbours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using S = ScriptedScheduler;

constexpr StreamId kFirst = 100;
constexpr uint64_t kPoison = 1;  // Its number; handles of this test are numbers too.

const RequestSide& SmallSide(const S& s, uint64_t request) {
  return s.core.requests().Find(request)->side(Role::kSmall);
}

// Every request that a worker runs, except the poison, gets on by one token.
void LetOthersWrite(S* s, const std::vector<uint64_t>& requests) {
  for (const uint64_t key : requests) {
    const RequestMachine* const request = s->core.requests().Find(key);
    if (request == nullptr || request->service().ready.worker == 0) continue;
    const RequestSide& side = request->side(Role::kSmall);
    s->Send(side.worker, S::Row(key, side.epoch, request->history().committed(), {40}));
  }
}

std::set<uint64_t> Running(const S& s, StreamId stream) {
  std::set<uint64_t> running;
  s.core.requests().ForEach([&](const RequestMachine& request) {
    if (request.service().ready.worker == stream) running.insert(request.origin().key);
  });
  return running;
}

TEST(SuspectTest, APoisonRequestTakesThreeWorkersAlongAndNobodyElseFails) {
  S s;
  const std::vector<uint64_t> innocent = {2, 3, 4, 5, 6, 7, 8};
  s.Attach(Role::kSmall, kFirst);
  s.Connect();
  for (uint64_t request = 1; request <= 8; ++request) s.Submit(request);
  StreamId next = kFirst + 1;
  int lost = 0;
  for (int round = 0; round < 100 && s.core.requests().Find(kPoison) != nullptr; ++round) {
    // The poison crashes whoever runs it; the process comes again under another name.
    if (const StreamId worker = s.core.requests().Find(kPoison)->service().ready.worker;
        worker != 0) {
      s.WorkerGone(worker);
      s.Attach(Role::kSmall, next++);
      ++lost;
    } else {
      LetOthersWrite(&s, innocent);
    }
  }
  EXPECT_EQ(lost, 3);
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).handle(), kPoison);
  EXPECT_EQ(heard.rejections(0).reason(), "crash_suspect");
  EXPECT_EQ(heard.rejections(0).code(), static_cast<int>(absl::StatusCode::kInternal));
  for (int round = 0; round < 20; ++round) LetOthersWrite(&s, innocent);
  for (const uint64_t key : innocent) {
    ASSERT_NE(s.core.requests().Find(key), nullptr) << key;
    EXPECT_EQ(SmallSide(s, key).losses(), 0) << key << " has written since";
    EXPECT_NE(s.core.requests().Find(key)->service().ready.worker, 0u) << key;
  }
}

TEST(SuspectTest, AtMostOneSuspectRunsPerWorkerUntilItHasWrittenTwice) {
  S s;
  s.Attach(Role::kSmall, kFirst);
  s.Connect();
  for (uint64_t request = 1; request <= 3; ++request) s.Submit(request);
  s.Attach(Role::kSmall, kFirst + 1);
  s.Submit(4);  // On the new worker, never on a lost one.
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(4));
  s.WorkerGone(kFirst);
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(1, 4)) << "one suspect, and who ran there";
  EXPECT_EQ(s.Told(kFirst + 1).opens_size(), 2);
  s.Submit(5);
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(1, 4, 5)) << "others need not wait";
  s.Send(kFirst + 1, S::Row(1, 2, 3, {40}));
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(1, 4, 5));
  s.Send(kFirst + 1, S::Row(1, 2, 4, {41}));
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(1, 2, 4, 5));
  s.Cancel(2);
  s.Closed(kFirst + 1, 2);
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(1, 3, 4, 5)) << "the next one's turn";
  // A second worker takes the suspects that wait.
  s.Submit(6);
  s.WorkerGone(kFirst + 1);
  s.Attach(Role::kSmall, kFirst + 2);
  s.Attach(Role::kSmall, kFirst + 3);
  EXPECT_EQ(Running(s, kFirst + 2).size(), 1u);
  EXPECT_EQ(Running(s, kFirst + 3).size(), 1u);
}

TEST(SuspectTest, ASuspectThatLeavesOrIsCreditBlockedMakesRoomForTheNext) {
  S s;
  s.Attach(Role::kSmall, kFirst);
  s.Attach(Role::kLarge, S::kLarge);
  s.Connect();
  for (uint64_t request = 1; request <= 3; ++request) s.Submit(request);
  s.WorkerGone(kFirst);
  s.Attach(Role::kSmall, kFirst + 1);
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(1));
  s.Send(kFirst + 1, S::HandingOff(S::Row(1, 2, 3, {40}), Role::kLarge));
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(2));
  // It comes back as a suspect still, and waits until it may run.
  s.Send(S::kLarge, S::HandingOff(S::Row(1, 1, 4, {50}, 2), Role::kSmall));
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(2));
  wire::RowReport blocked = S::Row(2, 2, 3, std::vector<TokenId>(64, 40));
  blocked.set_credit_blocked(true);
  s.ForgetFrames();
  s.Send(kFirst + 1, blocked);
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(1));
  EXPECT_EQ(s.Told(kFirst + 1).extends_size(), 1) << "its side is still open";
  s.Ack(2, 60);
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(1));
  s.Send(kFirst + 1, S::Row(1, 2, 5, {41}));
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(1, 2)) << "oldest first";
  EXPECT_EQ(s.Told(kFirst + 1).credits_size(), 1);
}

TEST(SuspectTest, OnTheLargeSideTooOneRunsAtATime) {
  S s;
  s.AttachAll();
  for (uint64_t request = 1; request <= 2; ++request) {
    s.Submit(request);
    s.Send(S::kSmall, S::HandingOff(S::Row(request, 1, 3, {40}), Role::kLarge));
  }
  EXPECT_THAT(Running(s, S::kLarge), ElementsAre(1, 2));
  s.WorkerGone(S::kLarge);
  s.Attach(Role::kLarge, kFirst);
  const wire::CommandFrame told = s.Told(kFirst);
  EXPECT_EQ(told.opens_size(), 1) << "what is open may be prefilled in the background";
  EXPECT_THAT(told.releases(), ElementsAre(1));
  s.Submit(3);
  s.Send(S::kSmall, S::HandingOff(S::Row(3, 1, 3, {40}), Role::kLarge));
  EXPECT_THAT(Running(s, kFirst), ElementsAre(1, 3));
  s.Send(kFirst, S::HandingOff(S::Row(1, 2, 4, {50}, 2), Role::kSmall));
  EXPECT_THAT(Running(s, kFirst), ElementsAre(2, 3));
}

TEST(SuspectTest, OnlyWhatRanIsSuspected) {
  S s;
  s.AttachAll();
  s.Submit(1);
  s.Submit(2);
  wire::RowReport blocked = S::Row(1, 1, 3, std::vector<TokenId>(64, 40));
  blocked.set_credit_blocked(true);
  s.Send(S::kSmall, blocked);
  s.Submit(3);
  s.Send(S::kSmall, S::HandingOff(S::Row(3, 1, 3, {40}), Role::kLarge));
  s.WorkerGone(S::kSmall);
  EXPECT_EQ(SmallSide(s, 1).losses(), 0) << "it waited for its client";
  EXPECT_EQ(SmallSide(s, 2).losses(), 1);
  EXPECT_EQ(SmallSide(s, 3).losses(), 0) << "it was on the large side";
}

TEST(SuspectTest, WhatWaitsForItsReleaseMayHaveBeenReadAhead) {
  S s(S::WaitingFor(3));
  s.AttachAll();
  s.Submit(1);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  ASSERT_THAT(Running(s, S::kLarge), ElementsAre(1)) << "the small side has nothing to do";
  s.Submit(2);
  s.Submit(3);
  s.Send(S::kSmall, S::HandingOff(S::Row(2, 1, 3, {40}), Role::kLarge));
  ASSERT_EQ(s.core.requests().Find(2)->phase(), Phase::kReleasable);
  // The worker may have begun its step before it knew that request 1 is released.
  s.WorkerGone(S::kLarge);
  EXPECT_EQ(s.core.requests().Find(1)->side(Role::kLarge).losses(), 1);
  EXPECT_EQ(s.core.requests().Find(2)->side(Role::kLarge).losses(), 1);
}

TEST(SuspectTest, WorkersThatAreLostAgainAndAgainCountOnce) {
  S s;
  s.Attach(kFirst, S::Hello(Role::kSmall, "flapping-0"));
  s.Connect();
  s.Submit(1);
  for (StreamId stream = kFirst; stream < kFirst + 5; ++stream) {
    s.WorkerGone(stream);
    s.Attach(stream + 1, S::Hello(Role::kSmall, stream % 2 == 0 ? "flapping-1" : "flapping-0"));
  }
  ASSERT_EQ(s.core.requests().size(), 1) << "a process that crashed has another name";
  EXPECT_EQ(SmallSide(s, 1).losses(), 2);
}

TEST(SuspectTest, SuspectsWaitForTheirTurnOnlySoLong) {
  CoreOptions options;
  options.suspect_wait = absl::Seconds(2);
  S s(options);
  s.Attach(Role::kSmall, kFirst);
  s.Connect();
  for (uint64_t request = 1; request <= 3; ++request) s.Submit(request);
  s.WorkerGone(kFirst);
  s.Attach(Role::kSmall, kFirst + 1);
  s.Tick(absl::Milliseconds(1999));
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(1));
  s.Tick(absl::Milliseconds(1));
  EXPECT_THAT(Running(s, kFirst + 1), ElementsAre(1, 2, 3)) << "in company, rather than not at all";
  EXPECT_THAT(s.Heard().rejections(), IsEmpty());
}

TEST(SuspectTest, SuspectsWaitForAPoolThatIsGoneLikeAllOthers) {
  S s;
  s.Attach(Role::kSmall, kFirst);
  s.Connect();
  for (uint64_t request = 1; request <= 2; ++request) s.Submit(request);
  s.WorkerGone(kFirst);
  s.Attach(Role::kSmall, kFirst + 1);
  s.WorkerGone(kFirst + 1);
  s.Tick(absl::Milliseconds(9999));
  EXPECT_EQ(s.core.requests().size(), 2);
  s.Tick(absl::Milliseconds(1));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 2);
  for (const wire::Rejection& rejection : heard.rejections()) {
    EXPECT_EQ(rejection.reason(), "no_small_worker");
  }
}

}  // namespace
}  // namespace tokenrouter
