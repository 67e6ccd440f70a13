// When large sides are opened and fed: at their first decode grant, or before it in the background.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/placement/placement.h"
#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using S = ScriptedScheduler;

CoreOptions With(LargePrefill when) {
  CoreOptions options;
  options.large_prefill = when;
  options.credit = 1000;
  return options;
}

std::vector<TokenId> Ids(int count) { return std::vector<TokenId>(count, 40); }

TEST(LargePrefill, LazyOpensAtTheFirstGrant) {
  S s(With(LargePrefill::kLazy));
  s.AttachAll();
  s.ForgetFrames();
  s.Submit(1);
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 0);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 1);
}

TEST(LargePrefill, IdleOpensAtAdmissionWithoutTheGrant) {
  S s(With(LargePrefill::kIdle));
  s.AttachAll();
  EXPECT_FALSE(s.Told(S::kLarge).attached().background_prefill());
  s.Submit(1);
  wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_FALSE(told.opens(0).has_grant());
  EXPECT_EQ(told.releases_size(), 0);
  EXPECT_EQ(s.core.counters().background_opens, 1u);
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge));
  told = s.Told(S::kLarge);
  EXPECT_EQ(told.opens_size(), 0);
  ASSERT_EQ(told.extends_size(), 1);
  EXPECT_TRUE(told.extends(0).has_grant());
  EXPECT_THAT(told.extends(0).ids(), ElementsAre(40));
  EXPECT_THAT(told.releases(), ElementsAre(1u));
}

TEST(LargePrefill, EagerTellsWorkersToPrefillAtOnce) {
  S s(With(LargePrefill::kEager));
  s.AttachAll();
  EXPECT_TRUE(s.Told(S::kLarge).attached().background_prefill());
  s.Submit(1);
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 1);
}

TEST(LargePrefill, AutoIsIdleOnADedicatedDeviceAndLazyOnASharedOne) {
  for (const bool shared : {false, true}) {
    S s(With(LargePrefill::kAuto));
    s.Attach(Role::kSmall, S::kSmall);
    wire::WorkerHello hello = S::Hello(Role::kLarge, "large");
    if (shared) hello.set_device_key("device");
    s.Attach(S::kLarge, hello);
    s.Connect();
    s.ForgetFrames();
    s.Submit(1);
    EXPECT_EQ(s.Told(S::kLarge).opens_size(), shared ? 0 : 1);
  }
}

TEST(LargePrefill, OpensInBackgroundOnlyWhereBlocksAreFreeAndGivesWayToAGrant) {
  S s(With(LargePrefill::kIdle));
  s.Attach(Role::kSmall, S::kSmall);
  wire::WorkerHello hello = S::Hello(Role::kLarge, "large");
  hello.set_max_sequences(1);
  s.Attach(S::kLarge, hello);
  s.Connect();
  s.ForgetFrames();
  s.Submit(1);
  s.Submit(2);
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 1);
  s.Send(S::kSmall, S::HandingOff(S::Row(2, 1, 3, {40}), Role::kLarge));
  EXPECT_EQ(s.Told(S::kLarge).closes_size(), 1);
  s.Closed(S::kLarge, 1);
  const wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).request(), 2u);
  EXPECT_TRUE(told.opens(0).has_grant());
}

TEST(LargePrefill, ForwardsAChunkOfIdsToALargeWorkerThatHasNothingToDo) {
  S s(With(LargePrefill::kIdle));
  s.AttachAll();
  s.Submit(1);
  s.Submit(2);
  s.ForgetFrames();
  s.Send(S::kSmall, S::Row(1, 1, 3, Ids(kCatchUpChunk - 1)));
  EXPECT_EQ(s.Told(S::kLarge).extends_size(), 0) << "not worth a frame";
  // The large worker is busy with another request.
  s.Send(S::kSmall, S::HandingOff(S::Row(2, 1, 3, {40}), Role::kLarge));
  s.ForgetFrames();
  s.Send(S::kSmall, S::Row(1, 1, 2 + kCatchUpChunk, Ids(1)));
  EXPECT_EQ(s.Told(S::kLarge).extends_size(), 0);
  s.Send(S::kLarge, S::HandingOff(S::Row(2, 1, 4, {50}, 2), Role::kSmall));
  s.Send(S::kSmall, S::Row(1, 1, 3 + kCatchUpChunk, Ids(1)));
  const wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.extends_size(), 1);
  EXPECT_FALSE(told.extends(0).has_grant());
  EXPECT_EQ(told.extends(0).base(), 3);
  EXPECT_EQ(told.extends(0).ids_size(), kCatchUpChunk + 1);
  EXPECT_EQ(s.core.counters().forwarded_ids, static_cast<uint64_t>(kCatchUpChunk + 1));
}

}  // namespace
}  // namespace tokenrouter
