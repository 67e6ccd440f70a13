#include "services/scheduler/workers/prefix_affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using S = ScriptedScheduler;

std::vector<TokenId> Ids(size_t count, TokenId first = 0) {
  std::vector<TokenId> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  for (TokenId& id : ids) id %= 40;
  return ids;
}

TEST(PrefixAffinity, KnowsTheStartOfWhatWasSent) {
  SentPrefixes sent;
  sent.Add(PrefixKeys("", Ids(100)));
  EXPECT_EQ(sent.Known(PrefixKeys("", Ids(200))), 3u);
  EXPECT_EQ(sent.Known(PrefixKeys("", Ids(70))), 2u);
  EXPECT_EQ(sent.Known(PrefixKeys("", Ids(100, 1))), 0u);
  EXPECT_EQ(sent.Known(PrefixKeys("other", Ids(100))), 0u);
  EXPECT_EQ(PrefixWorth(sent, PrefixKeys("", Ids(100))), kPrefixWorth);
  EXPECT_EQ(PrefixWorth(sent, PrefixKeys("", Ids(192))), kPrefixWorth / 2);
  EXPECT_EQ(PrefixWorth(sent, PrefixKeys("", Ids(31))), 0);
}

TEST(PrefixAffinity, ForgetsTheLeastRecentlyUsedBeyondItsBound) {
  SentPrefixes sent;
  const auto kept = PrefixKeys("kept", Ids(3 * kPrefixChunk));
  const auto old = PrefixKeys("old", Ids(3 * kPrefixChunk));
  sent.Add(old);
  sent.Add(kept);
  for (int i = 0; sent.size() < kMaxSentPrefixes; ++i) {
    sent.Add(PrefixKeys(std::to_string(i), Ids(kPrefixChunk)));
  }
  sent.Add(kept);
  sent.Add(PrefixKeys("one more", Ids(kPrefixChunk)));
  EXPECT_EQ(sent.size(), kMaxSentPrefixes);
  EXPECT_EQ(sent.Known(kept), 3u);
  EXPECT_EQ(sent.Known(old), 2u);  // The last chunk of the oldest prompt was dropped.
}

TEST(PrefixAffinity, SendsTheNextChatTurnToTheSameWorkerUnlessItsLoadIsMuchHigher) {
  S s;
  constexpr StreamId kOther = 11;
  s.AttachAll();
  s.Attach(Role::kSmall, kOther);
  const auto submit = [&s](uint64_t handle, TokenId first) {
    wire::Submit submit = S::MakeSubmit(handle);
    const std::vector<TokenId> ids = Ids(100, first);
    submit.mutable_ids()->Assign(ids.begin(), ids.end());
    submit.mutable_spec()->set_prompt_length(100);
    s.ForgetFrames();
    s.Submit(submit);
    return s.Told(S::kSmall).opens_size() > 0 ? S::kSmall : kOther;
  };
  const StreamId first = submit(1, 0);
  const StreamId second = submit(2, 7);
  EXPECT_NE(first, second);
  // Both have one sequence; then theirs are more and more.
  uint64_t handle = 3;
  for (int i = 0; i < kPrefixWorth; ++i) EXPECT_EQ(submit(handle++, 7), second) << i;
  EXPECT_EQ(submit(handle++, 3), first);
  EXPECT_EQ(submit(handle++, 7), second);
}

}  // namespace
}  // namespace tokenrouter
