// Several workers lost at once: what they held is judged once, among those that are left.
#include "services/scheduler/placement/worker_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using S = ScriptedScheduler;

constexpr StreamId kFirst = 100;

void AttachSmall(S* s, int count) {
  for (int i = 0; i < count; ++i) s->Attach(Role::kSmall, kFirst + static_cast<StreamId>(i));
}

uint64_t Reopened(const S& s, Role role) {
  uint64_t all = 0;
  for (const uint64_t count : s.core.counters().reopened[Index(role)]) all += count;
  return all;
}

TEST(WorkerLossTest, AWholePoolLostAtOnceIsOneReopenUnderTheDeclaredPolicy) {
  S s;
  AttachSmall(&s, 18);
  s.Connect();
  s.Submit(7);
  s.ForgetFrames();
  s.Tick(absl::Seconds(4));
  EXPECT_EQ(s.peers.closed_workers.size(), 18u);
  EXPECT_EQ(Reopened(s, Role::kSmall), 0u) << "there is nobody left to open it";
  ASSERT_EQ(s.core.requests().size(), 1) << s.Heard().ShortDebugString();
  EXPECT_EQ(s.core.requests().Find(1)->service().reopens, 1);
  EXPECT_TRUE(s.peers.worker_frames.empty()) << "no frame goes to a dead worker";
  s.Tick(absl::Seconds(10));
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "no_small_worker");
}

TEST(WorkerLossTest, TheLivingTakeOverFromAllThatFellSilentTogether) {
  constexpr int kWorkers = 6;
  S s;
  AttachSmall(&s, kWorkers);
  s.Connect();
  for (uint64_t request = 1; request <= kWorkers; ++request) s.Submit(request);
  s.Tick(absl::Seconds(2));
  for (StreamId stream = kFirst + 3; stream < kFirst + kWorkers; ++stream) s.Beat(stream);
  s.ForgetFrames();
  s.Tick(absl::Seconds(2));
  EXPECT_EQ(s.peers.closed_workers.size(), 3u);
  EXPECT_EQ(Reopened(s, Role::kSmall), 3u) << "one request was on each worker";
  int opens = 0;
  for (StreamId stream = kFirst; stream < kFirst + kWorkers; ++stream) {
    const bool alive = stream >= kFirst + 3;
    const int here = s.Told(stream).opens_size();
    EXPECT_TRUE(alive || here == 0) << "worker " << stream << " is dead";
    opens += here;
  }
  EXPECT_EQ(opens, 3);
  for (uint64_t request = 1; request <= kWorkers; ++request) {
    EXPECT_LE(s.core.requests().Find(request)->service().reopens, 1) << request;
  }
}

TEST(WorkerLossTest, StreamsThatEndInOneBatchAreOneLoss) {
  constexpr int kWorkers = 18;
  S s;
  AttachSmall(&s, kWorkers + 1);
  s.Connect();
  s.Submit(7);
  s.ForgetFrames();
  for (StreamId stream = kFirst; stream < kFirst + kWorkers; ++stream) {
    s.core.OnWorkerGone(stream, s.now);
  }
  s.core.Flush(s.now);
  EXPECT_EQ(s.Told(kFirst + kWorkers).opens_size(), 1);
  EXPECT_EQ(Reopened(s, Role::kSmall), 1u);
  ASSERT_NE(s.core.requests().Find(1), nullptr);
  EXPECT_EQ(s.core.requests().Find(1)->service().reopens, 1);
}

TEST(WorkerLossTest, ARequestThatLosesBothSidesAtOnceIsReopenedOnce) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.Attach(Role::kSmall, kFirst);
  s.Attach(Role::kLarge, kFirst + 1);
  s.ForgetFrames();
  s.Tick(absl::Seconds(2));
  s.Beat(kFirst);
  s.Beat(kFirst + 1);
  s.Tick(absl::Seconds(2));
  EXPECT_EQ(s.peers.closed_workers.size(), 2u);
  EXPECT_EQ(s.Told(kFirst + 1).opens_size(), 1);
  EXPECT_EQ(s.Told(kFirst).opens_size(), 0) << "it is opened when it gets the decode grant";
  EXPECT_EQ(s.core.requests().Find(1)->service().reopens, 1);
}

TEST(WorkerLossTest, PeersThatMustAttachAgainDoNotTakeOverFromEachOther) {
  constexpr int kWorkers = 18;
  S s;
  for (int i = 0; i < kWorkers; ++i) {
    s.Attach(Role::kLarge, kFirst + static_cast<StreamId>(i));
  }
  s.Connect();
  s.core.ForceMode(ServiceMode::kLargeAlone);
  wire::Submit submit = S::MakeSubmit(7, "always");
  s.Submit(submit);
  s.ForgetFrames();
  wire::WorkerHello other = S::Hello(Role::kSmall, "small");
  other.set_usable_ids(900);
  s.Attach(S::kSmall, other);
  EXPECT_EQ(s.peers.closed_workers.size(), 18u);
  EXPECT_EQ(Reopened(s, Role::kLarge), 0u);
  ASSERT_EQ(s.core.requests().size(), 1);
  EXPECT_EQ(s.core.requests().Find(1)->service().reopens, 1);
}

}  // namespace
}  // namespace tokenrouter
