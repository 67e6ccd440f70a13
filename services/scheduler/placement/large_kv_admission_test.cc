// KV reservations on large workers: which request waits, which is evicted, which comes back.
#include "services/scheduler/placement/large_kv_admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;
using S = ScriptedScheduler;

constexpr int32_t kBlock = 16;

// The large model takes 1 ms an id, so that histories are expensive to recompute.
void LearnLargeCurve(S* s) {
  wire::WorkerFrame frame;
  for (const int ids : {1, 50, 100, 1, 50, 100}) {
    frame.mutable_step()->set_rows(1);
    frame.mutable_step()->set_new_ids(ids);
    frame.mutable_step()->set_elapsed_us(1000 + 1000 * ids);
    s->ToCore(S::kLarge, frame);
  }
}

void AttachLarge(S* s, StreamId stream, const std::string& id, int64_t blocks) {
  wire::WorkerHello hello = S::Hello(Role::kLarge, id);
  hello.set_total_blocks(blocks);
  hello.set_block_size(kBlock);
  s->Attach(stream, hello);
}

void AttachWithBlocks(S* s, int64_t blocks) {
  s->Attach(Role::kSmall, S::kSmall);
  AttachLarge(s, S::kLarge, "large", blocks);
  s->Connect();
  LearnLargeCurve(s);
  s->ForgetFrames();
}

void SubmitLong(S* s, uint64_t handle, int prompt, int most_new = 20) {
  wire::Submit submit = S::MakeSubmit(handle);
  submit.clear_ids();
  for (int i = 0; i < prompt; ++i) submit.add_ids(1 + i % 100);
  submit.mutable_spec()->set_prompt_length(prompt);
  submit.mutable_spec()->mutable_stop()->set_max_new_tokens(most_new);
  s->Submit(submit);
}

void ToLarge(S* s, uint64_t request, Position base) {
  s->Send(S::kSmall, S::HandingOff(S::Row(request, 1, base, {40}), Role::kLarge));
}

void ToSmall(S* s, uint64_t request, uint32_t epoch, Position base) {
  s->Send(S::kLarge, S::HandingOff(S::Row(request, epoch, base, {50}, 2), Role::kSmall));
}

// Of 16 blocks the first request has eight, and its decode grant has gone back to the small side. A
// second one of the same length would need nine.
void ReserveForOne(S* s) {
  AttachWithBlocks(s, 16);
  SubmitLong(s, 1, 120);
  SubmitLong(s, 2, 120);
  ToLarge(s, 1, 120);
  ToSmall(s, 1, 1, 121);
}

uint64_t Evicted(const S& s, EvictionNeed need) { return s.core.counters().evicted[Index(need)]; }

const KvLedger& Ledger(const S& s) { return s.core.directory().Find(S::kLarge)->kv; }

TEST(LargeKvAdmission, AGrantWithoutBlocksWaitsWhileEvictionDoesNotPay) {
  S s;
  ReserveForOne(&s);
  s.ForgetFrames();
  ToLarge(&s, 2, 120);
  s.Tick(absl::Milliseconds(20));
  wire::CommandFrame told = s.Told(S::kLarge);
  EXPECT_EQ(told.opens_size() + told.closes_size(), 0) << "it will be back before 122 ms";
  EXPECT_EQ(s.core.large_waiting(), 1u);
  // The resident ends: its blocks count as free before the worker confirms.
  s.Send(S::kSmall, S::Finished(S::Row(1, 1, 122, {41}), 123));
  told = s.Told(S::kLarge);
  EXPECT_EQ(told.closes_size(), 1);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).request(), 2u);
  EXPECT_EQ(s.core.large_waiting(), 0u);
  EXPECT_EQ(Ledger(s).blocks_in_use(), 8);
}

TEST(LargeKvAdmission, AResidentThatWaitsForItsClientIsEvictedAtOnce) {
  CoreOptions options;
  options.credit = 4;
  S s(options);
  ReserveForOne(&s);
  wire::RowReport credit_blocked = S::Row(1, 1, 122, {41, 42});
  credit_blocked.set_credit_blocked(true);
  s.Send(S::kSmall, credit_blocked);
  ToLarge(&s, 2, 120);
  EXPECT_EQ(Evicted(s, EvictionNeed::kPays), 1u);
  EXPECT_EQ(s.core.large_waiting(), 0u);
}

TEST(LargeKvAdmission, AResidentThatStaysAwayIsEvicted) {
  S s;
  ReserveForOne(&s);
  ToLarge(&s, 2, 120);
  s.ForgetFrames();
  s.Tick(absl::Milliseconds(200));
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 1);
  EXPECT_EQ(Evicted(s, EvictionNeed::kPays), 1u);
  // It comes back, and the other one is away.
  ToSmall(&s, 2, 1, 121);
  ToLarge(&s, 1, 122);
  s.Closed(S::kLarge, 1);
  s.Tick(absl::Milliseconds(200));
  const wire::CommandFrame told = s.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).epoch(), 2u);
  EXPECT_EQ(told.opens(0).ids_size(), 123);
  EXPECT_EQ(s.core.counters().reopened[Index(Role::kLarge)][Index(ReopenCause::kEvicted)], 1u);
  EXPECT_EQ(s.core.counters().rebuilt_ids, 123u);
}

TEST(LargeKvAdmission, TheWorkerWithLessToRecomputeEvicts) {
  constexpr StreamId kOther = S::kLarge + 1;
  S s;
  AttachWithBlocks(&s, 10);
  AttachLarge(&s, kOther, "other", 10);
  SubmitLong(&s, 1, 120);
  SubmitLong(&s, 2, 60);
  SubmitLong(&s, 3, 100);
  ToLarge(&s, 1, 120);
  ToSmall(&s, 1, 1, 121);
  ToLarge(&s, 2, 60);
  s.Send(kOther, S::HandingOff(S::Row(2, 1, 61, {50}, 2), Role::kSmall));
  s.Tick(absl::Milliseconds(200));  // Longer than the recomputation of either.
  s.ForgetFrames();
  ToLarge(&s, 3, 100);
  EXPECT_EQ(s.Told(S::kLarge).closes_size(), 0);
  const wire::CommandFrame told = s.Told(kOther);
  ASSERT_EQ(told.closes_size(), 1);
  EXPECT_EQ(told.closes(0).request(), 2u);
  EXPECT_EQ(told.opens_size(), 1);
}

TEST(LargeKvAdmission, NoRequestStarvesBehindResidentsThatComeAndGo) {
  CoreOptions options;
  options.evict_overdue_after = absl::Milliseconds(500);
  options.rebuild_share = 0.5;
  S s(options);
  ReserveForOne(&s);
  ToLarge(&s, 2, 120);
  Position length = 122;
  while (s.core.large_waiting() > 0 && length < 138) {
    s.Tick(absl::Milliseconds(60));
    if (s.core.large_waiting() == 0) break;
    ToLarge(&s, 1, length);
    s.Tick(absl::Milliseconds(60));
    ToSmall(&s, 1, 1, length + 1);
    length += 2;
  }
  EXPECT_EQ(s.core.large_waiting(), 0u);
  EXPECT_EQ(Evicted(s, EvictionNeed::kPays), 0u);
  EXPECT_EQ(Evicted(s, EvictionNeed::kOverdue), 1u);
}

TEST(LargeKvAdmission, NoRequestOvertakesTheOneThatHasWaitedLongest) {
  S s;
  AttachWithBlocks(&s, 16);
  SubmitLong(&s, 1, 120);
  SubmitLong(&s, 2, 120);
  SubmitLong(&s, 3, 10);
  ToLarge(&s, 1, 120);
  ToLarge(&s, 2, 120);
  s.ForgetFrames();
  ToLarge(&s, 3, 10);
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 0) << "though it would fit";
  s.Cancel(2);
  EXPECT_EQ(s.Told(S::kLarge).opens_size(), 1);
}

TEST(LargeKvAdmission, AResidentThatGrowsTakesTheBlocksOfAnother) {
  S s;
  AttachWithBlocks(&s, 16);
  SubmitLong(&s, 1, 110, 60);
  SubmitLong(&s, 2, 110, 60);
  ToLarge(&s, 1, 110);
  ToLarge(&s, 2, 110);
  EXPECT_EQ(Ledger(s).blocks_in_use(), 14);
  for (const uint64_t request : {1, 2}) ToSmall(&s, request, 1, 111);
  s.ForgetFrames();
  s.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 112, std::vector<TokenId>(19, 40)), Role::kLarge));
  EXPECT_EQ(s.Told(S::kLarge).closes_size(), 0) << "nine and seven are all blocks";
  ToSmall(&s, 1, 1, 131);
  s.Send(S::kSmall, S::HandingOff(S::Row(2, 1, 112, {40}), Role::kLarge));
  EXPECT_EQ(s.Told(S::kLarge).closes_size(), 1) << "the other one, though it will come back";
  EXPECT_EQ(Evicted(s, EvictionNeed::kGrowth), 1u);
  EXPECT_EQ(Ledger(s).blocks_in_use(), 8);
}

TEST(LargeKvAdmission, ARequestThatFitsNoWorkerAloneIsRefusedWithTheNumberOfBlocks) {
  S s;
  AttachWithBlocks(&s, 8);
  SubmitLong(&s, 1, 109);
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).reason(), "context_limit");
  EXPECT_THAT(heard.rejections(0).message(),
              HasSubstr("context limit 128 of pair pair (worker large has 8 KV blocks of 16 "
                        "tokens; raise its kv_bytes)"));
  SubmitLong(&s, 2, 108);
  EXPECT_EQ(s.Heard().rejections_size(), 0);
}

}  // namespace
}  // namespace tokenrouter
