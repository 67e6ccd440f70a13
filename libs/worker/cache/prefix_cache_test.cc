// Tests the cache as a worker uses it: what is shared, what is not, and what is evicted.
#include "libs/worker/cache/prefix_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "libs/worker/testing/worker_core_fixture.h"

namespace tokenrouter {
namespace {

constexpr int32_t kBlock = 4;  // Of the fixture's engine.

std::vector<TokenId> Prompt(int length, int first = 0) {
  std::vector<TokenId> ids(length);
  std::iota(ids.begin(), ids.end(), first);
  for (TokenId& id : ids) id %= 40;
  return ids;
}

class PrefixCacheTest : public WorkerCoreTest {
 protected:
  struct Ran {
    int64_t new_ids = 0;
    int64_t cached_ids = 0;
    std::vector<TokenId> ids;
  };
  // From Open to Close, alone.
  Ran Serve(const std::vector<TokenId>& prompt, const std::string& tenant = "", int max_new = 3) {
    const uint64_t key = next_key_++;
    OpenPrompt(key, prompt, tenant, max_new);
    Ran ran;
    while (const std::optional<wire::WorkerFrame> frame = Step()) {
      ran.new_ids += frame->step().new_ids();
      for (const wire::RowReport& row : frame->rows()) {
        ran.cached_ids += row.cached_ids();
        ran.ids.insert(ran.ids.end(), row.ids().begin(), row.ids().end());
      }
    }
    Close(key);
    core_->TakePending(now_);
    return ran;
  }
  void OpenPrompt(uint64_t key, const std::vector<TokenId>& prompt, const std::string& tenant = "",
                  int max_new = 3) {
    wire::GenerationSpec spec = Spec(absl::StrCat("r", key), "never", max_new);
    spec.set_tenant(tenant);
    spec.mutable_stop()->set_ignore_eos(true);
    Open(OpenOf(key, spec, prompt));
  }
  uint64_t next_key_ = 1;
};

TEST_F(PrefixCacheTest, TheSamePromptAgainRunsOnlyItsLastBlock) {
  Start();
  Attach();
  const Ran first = Serve(Prompt(20));
  EXPECT_EQ(first.new_ids, 22);
  EXPECT_EQ(first.cached_ids, 0);
  const Ran second = Serve(Prompt(20));
  EXPECT_EQ(second.cached_ids, 16);  // All but the last id must be there: four blocks of five.
  EXPECT_EQ(second.new_ids, 6);
  EXPECT_EQ(second.ids, first.ids);
  EXPECT_EQ(core_->store().cache().counters().hit_ids, 16u);
  EXPECT_EQ(core_->store().cache().counters().lookup_ids, 40u);
}

TEST_F(PrefixCacheTest, TheNextTurnOfAConversationRunsOnlyWhatIsNew) {
  Start();
  Attach();
  std::vector<TokenId> ids = Prompt(21);
  for (int turn = 0; turn < 5; ++turn) {
    const auto known = static_cast<int64_t>(ids.size());
    const Ran ran = Serve(ids, "", /*max_new=*/6);
    if (turn > 0) {
      EXPECT_GE(ran.cached_ids, known - 7 - kBlock) << "turn " << turn;
    }
    ids.insert(ids.end(), ran.ids.begin(), ran.ids.end());
    for (TokenId id = 0; id < 6; ++id) ids.push_back(id + turn);
    // The longer sequence makes the shorter one superfluous.
    EXPECT_EQ(core_->store().cache().cached_sequences(), 1u);
  }
}

TEST_F(PrefixCacheTest, ATenantGetsNothingOfAnother) {
  Start();
  Attach();
  Serve(Prompt(20), "red");
  EXPECT_EQ(Serve(Prompt(20), "blue").cached_ids, 0);
  EXPECT_EQ(Serve(Prompt(20), "").new_ids, 22);
  EXPECT_EQ(Serve(Prompt(20), "red").cached_ids, 16);
}

TEST_F(PrefixCacheTest, ANameThatComesBackWithAnotherTenantStartsFromNothing) {
  Start();
  Attach(/*term=*/1);
  OpenPrompt(1, Prompt(20), "red");
  Step();
  Attach(/*term=*/2);
  wire::GenerationSpec spec = Spec("r1", "never", 3);
  spec.set_tenant("blue");
  Open(OpenOf(1, spec, Prompt(20)), /*term=*/2);
  const auto frame = Step();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->step().new_ids(), 20);
}

TEST_F(PrefixCacheTest, ARunningRequestSharesTooAndIsNotDisturbed) {
  Start();
  Attach();
  const Ran alone = Serve(Prompt(30, 5), "other");
  OpenPrompt(100, Prompt(30, 5), "", 3);
  Step();
  const Ran second = Serve(Prompt(30, 5));
  EXPECT_EQ(second.cached_ids, 28);
  EXPECT_EQ(alone.ids.size(), 3u);
}

// All of them arrive before the first step: one computes the prompt, the others wait for its
// blocks.
TEST_F(PrefixCacheTest, RequestsThatComeTogetherReadTheirCommonPromptOnce) {
  for (const int64_t max_step_tokens : {64, 512}) {
    Start({.max_step_tokens = max_step_tokens});
    Attach();
    for (uint64_t key = 1; key <= 40; ++key) {
      std::vector<TokenId> prompt = Prompt(120);
      prompt.push_back(static_cast<TokenId>(key));
      OpenPrompt(key, prompt);
    }
    OpenPrompt(50, Prompt(120), "another tenant");
    int64_t new_ids = 0;
    int cached = 0;
    while (const std::optional<wire::WorkerFrame> frame = Step()) {
      new_ids += frame->step().new_ids();
      for (const wire::RowReport& row : frame->rows()) cached += row.cached_ids() == 120;
    }
    EXPECT_EQ(cached, 39);
    EXPECT_EQ(new_ids, 2 * 120 + 40 + 41 * 2);
    EXPECT_EQ(core_->counters().committed, 41u * 3);
  }
}

TEST_F(PrefixCacheTest, CachedBlocksAreFreeForThoseWhoNeedThem) {
  Start({}, /*total_blocks=*/12);
  Attach();
  Serve(Prompt(20));
  EXPECT_EQ(core_->store().free_blocks(), 12);
  EXPECT_EQ(core_->store().cache().cached_blocks(), 5);
  EXPECT_EQ(engine_->unallocated_blocks(), 7);
  // Needs nine blocks: two of the cached ones are evicted, from the end.
  const Ran other = Serve(Prompt(33, 7));
  EXPECT_EQ(other.new_ids, 35);
  EXPECT_EQ(core_->store().cache().counters().evictions, 2u);
  EXPECT_EQ(core_->counters().preemptions, 0u);
  EXPECT_EQ(Serve(Prompt(20)).cached_ids, 12);
}

TEST_F(PrefixCacheTest, TheLeastRecentlyUsedGoesFirst) {
  Start({}, /*total_blocks=*/12);
  Attach();
  Serve(Prompt(16, 0));
  Serve(Prompt(16, 20));
  EXPECT_EQ(Serve(Prompt(16, 0)).cached_ids, 12);
  Serve(Prompt(24, 30));
  EXPECT_EQ(Serve(Prompt(16, 0)).cached_ids, 12);
  EXPECT_LT(Serve(Prompt(16, 20)).cached_ids, 12);
}

TEST_F(PrefixCacheTest, CachedSequencesAreBounded) {
  Start({}, /*total_blocks=*/100000);
  Attach();
  for (size_t i = 0; i < kMaxCachedSequences + 3; ++i) {
    std::vector<TokenId> prompt = {static_cast<TokenId>(i % 40), static_cast<TokenId>(i / 40), 1, 2,
                                   3};
    Serve(prompt, "", /*max_new=*/1);
  }
  EXPECT_EQ(core_->store().cache().cached_sequences(), kMaxCachedSequences);
  EXPECT_EQ(core_->store().cache().counters().evictions, 3u);
}

TEST_F(PrefixCacheTest, SwitchedOffNothingIsKeptOrShared) {
  Start({.prefix_cache = false});
  Attach();
  Serve(Prompt(20));
  EXPECT_EQ(engine_->unallocated_blocks(), 1000);
  EXPECT_EQ(Serve(Prompt(20)).new_ids, 22);
}

TEST_F(PrefixCacheTest, AFailedRequestLeavesNothingBehind) {
  Start();
  Attach();
  OpenPrompt(1, Prompt(20));
  Step();
  engine_->FailStep(1, absl::InternalError("broken"));
  Step();
  Close(1);
  EXPECT_EQ(engine_->unallocated_blocks(), 1000);
}

// The last id of a prompt that is entirely in KV is computed again, into a separate block.
TEST_F(PrefixCacheTest, ASequenceThatSharesItsLastBlockNeverWritesIntoIt) {
  Start({}, /*total_blocks=*/11);
  Attach();
  wire::GenerationSpec spec = Spec("held", "never", 3);
  Open(OpenOf(1, spec, Prompt(20), /*granted=*/false));  // Catches up: five full blocks.
  Step();
  OpenPrompt(2, Prompt(21));
  Step();
  EXPECT_EQ(engine_->unallocated_blocks(), 11 - 5 - 1);
  wire::CommandFrame frame = Commands();
  wire::Extend& extend = *frame.add_extends();
  extend.set_request(1);
  extend.set_epoch(1);
  extend.set_base(20);
  *extend.mutable_grant()->mutable_window() = ToWire(Window::OwnRule());
  core_->Apply(frame, now_);
  const auto step = Step();
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(core_->counters().engine_errors, 0u);
  EXPECT_EQ(step->step().new_ids(), kBlock + 1);  // The whole last block again, and a row of 2.
}

}  // namespace
}  // namespace tokenrouter
