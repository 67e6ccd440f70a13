// Workers that beat but do not answer.
#include "services/scheduler/core/grant_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using S = ScriptedScheduler;

constexpr StreamId kSmall2 = 11;

// Seconds of ticks with heartbeats that know of no step.
void BeatFor(S* s, absl::Duration time, const std::vector<StreamId>& workers) {
  for (absl::Duration passed; passed < time; passed += absl::Seconds(1)) {
    for (const StreamId worker : workers) s->Beat(worker);
    s->Tick(absl::Seconds(1));
  }
}

TEST(GrantWatch, ARequestThatIsNeverAnsweredIsOpenedElsewhere) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Attach(Role::kSmall, kSmall2);
  s.ForgetFrames();
  BeatFor(&s, absl::Hours(1), {S::kSmall, S::kLarge, kSmall2});
  EXPECT_TRUE(s.peers.closed_workers.empty()) << "they are alive";
  ASSERT_EQ(s.Told(S::kSmall).closes_size(), 1);
  const wire::CommandFrame told = s.Told(kSmall2);
  ASSERT_GE(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).epoch(), 2u);
  EXPECT_TRUE(told.opens(0).has_grant());
  EXPECT_GE(s.core.counters().reopened[Index(Role::kSmall)][Index(ReopenCause::kStalled)], 1u);
}

TEST(GrantWatch, TheOnlyWorkerGetsItAgainOnceItHasLetGo) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.ForgetFrames();
  BeatFor(&s, CoreOptions().grant_timeout + absl::Seconds(1), {S::kSmall, S::kLarge});
  wire::CommandFrame told = s.Told(S::kSmall);
  ASSERT_EQ(told.closes_size(), 1);
  EXPECT_EQ(told.opens_size(), 0);
  s.Closed(S::kSmall, told.closes(0).request());
  told = s.Told(S::kSmall);
  ASSERT_EQ(told.opens_size(), 1);
  s.ForgetFrames();
  s.Send(S::kSmall, S::Row(1, told.opens(0).epoch(), 3, {40}));
  EXPECT_EQ(s.Heard().chunks_size(), 1);
}

TEST(GrantWatch, ARequestThatNobodyAnswersEnds) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.ForgetFrames();
  BeatFor(&s, absl::Hours(1), {S::kSmall, S::kLarge});
  EXPECT_EQ(s.Heard().rejections_size(), 1);
  EXPECT_EQ(s.core.requests().size(), 0);
}

TEST(GrantWatch, ARequestThatGoesOnIsLeftAlone) {
  S s;
  s.AttachAll();
  s.Submit(7);
  s.ForgetFrames();
  Position base = 3;
  for (int i = 0; i < 30; ++i) {
    BeatFor(&s, absl::Minutes(1), {S::kSmall, S::kLarge});
    s.Send(S::kSmall, S::Row(1, 1, base++, {40}));
    s.Ack(7, base);
  }
  EXPECT_EQ(s.Told(S::kSmall).closes_size(), 0);
}

TEST(GrantWatch, ALargeRowThatIsNeverAnsweredIsOpenedElsewhereToo) {
  constexpr StreamId kLarge2 = 21;
  S s;
  s.AttachAll();
  s.Submit(7);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  s.Attach(Role::kLarge, kLarge2);
  s.ForgetFrames();
  BeatFor(&s, CoreOptions().grant_timeout * 2 + absl::Seconds(2), {S::kSmall, S::kLarge, kLarge2});
  EXPECT_EQ(s.Told(S::kLarge).closes_size(), 1);
  const wire::CommandFrame told = s.Told(kLarge2);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_THAT(told.opens(0).ids(), ElementsAre(1, 2, 3, 40));
  EXPECT_THAT(told.releases(), ElementsAre(1u));
}

TEST(GrantWatch, ARowThatWaitsForItsClientIsNotTheWorkersFault) {
  CoreOptions options;
  options.client_stall = absl::Hours(2);
  S s(options);
  s.AttachAll();
  s.Submit(7);
  wire::RowReport row = S::Row(1, 1, 3, std::vector<TokenId>(64, 40));
  row.set_credit_blocked(true);
  s.Send(S::kSmall, row);
  s.ForgetFrames();
  BeatFor(&s, absl::Hours(1), {S::kSmall, S::kLarge});
  EXPECT_EQ(s.Told(S::kSmall).closes_size(), 0);
}

}  // namespace
}  // namespace tokenrouter
