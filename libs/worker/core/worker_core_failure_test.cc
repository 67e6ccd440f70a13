// What a WorkerCore does when streams break, leases end, requests cannot be served and steps fail.
#include <algorithm>
#include <map>

#include "libs/worker/core/worker_core.h"
#include "libs/worker/testing/worker_core_fixture.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(WorkerCoreTest, ReopeningAHeldRequestKeepsTheCommonPrefixInKv) {
  Start();
  Attach(1);
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3, 4, 5}));
  Step();
  core_->Detach();
  Attach(2);
  EXPECT_FALSE(Step().has_value());
  Open(OpenOf(9, Spec("a", "never"), {1, 2, 3, 8}), 2);
  const auto frame = Step();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->step().new_ids(), 1);
  EXPECT_EQ(frame->rows(0).request(), 9u);
}

TEST_F(WorkerCoreTest, FreesUnclaimedSequencesAfterTheirTime) {
  Start();
  Attach(1);
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3}));
  Step();
  core_->Detach();
  Attach(2, /*keep_unclaimed_ms=*/500);
  EXPECT_EQ(core_->NextDeadline(), now_ + absl::Milliseconds(500));
  now_ += absl::Milliseconds(499);
  core_->TakePending(now_);
  EXPECT_EQ(core_->store().size(), 1u);
  now_ += absl::Milliseconds(1);
  core_->TakePending(now_);
  EXPECT_EQ(core_->store().size(), 0u);
  EXPECT_EQ(core_->store().free_blocks(), 1000);
}

TEST_F(WorkerCoreTest, AStreamLostDuringAStepLeavesNoRowsToReport) {
  Start();
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3}));
  std::optional<PlannedStep> step = core_->Plan(now_);
  core_->Detach();
  ASSERT_THAT(core_->Execute(&*step), IsOk());
  EXPECT_THAT(core_->Complete(*std::move(step), now_).rows(), SizeIs(0));
  EXPECT_FALSE(Step().has_value());
  EXPECT_EQ(core_->Hello().hello().held_size(), 1);
}

TEST_F(WorkerCoreTest, WhatItCannotServeEndsWithADetail) {
  Start();
  Attach();
  wire::GenerationSpec magic = Spec("a", "magic");
  Open(OpenOf(1, magic, {1, 2}));
  Open(OpenOf(2, Spec("b", "never"), {1, 999}));
  wire::Open no_ids = OpenOf(3, Spec("c", "never"), {});
  Open(no_ids);
  wire::Open tail = OpenOf(4, Spec("d", "never"), {1, 2});
  tail.set_tail(2);
  Open(tail);
  const auto said = core_->TakePending(now_);
  ASSERT_TRUE(said.has_value());
  ASSERT_THAT(said->rows(), SizeIs(4));
  for (const wire::RowReport& row : said->rows()) {
    EXPECT_EQ(row.finish().reason(), api::FINISH_REASON_ERROR);
  }
  EXPECT_THAT(said->rows(0).finish().detail(), HasSubstr("unknown routing algorithm"));
  EXPECT_EQ(said->rows(0).base_position(), 2);
  EXPECT_THAT(said->rows(1).finish().detail(), HasSubstr("token id 999 is outside [0, 50)"));
  EXPECT_FALSE(Step().has_value());
}

TEST_F(WorkerCoreTest, ARefusedRequestCannotBeExtendedIntoLife) {
  Start();
  Attach();
  Open(OpenOf(1, Spec("a", "magic"), {1, 2}));
  wire::CommandFrame frame = Commands();
  wire::Extend& extend = *frame.add_extends();
  extend.set_request(1);
  extend.set_epoch(1);
  extend.set_base(2);
  *extend.mutable_grant()->mutable_window() = ToWire(Window::OwnRule());
  core_->Apply(frame, now_);
  EXPECT_FALSE(Step().has_value());
  EXPECT_EQ(core_->counters().refused, 2u);
}

TEST_F(WorkerCoreTest, AFailedStepEndsItsRowsAndFreesThem) {
  Start();
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3}));
  engine_->FailStep(1, absl::InternalError("boom"));
  const auto frame = Step();
  ASSERT_THAT(frame->rows(), SizeIs(1));
  EXPECT_THAT(frame->rows(0).finish().detail(), HasSubstr("boom"));
  EXPECT_EQ(core_->store().free_blocks(), 1000);
  EXPECT_FALSE(Step().has_value());
}

TEST_F(WorkerCoreTest, OneBadRowDoesNotEndTheOthers) {
  Start();
  Attach();
  for (uint64_t i = 1; i <= 3; ++i) Open(OpenOf(i, Spec(absl::StrCat(i), "never", 5), {1, 2, 3}));
  engine_->FailStep(1, absl::InternalError("NaN"));  // All three together.
  engine_->FailStep(3, absl::InternalError("NaN"));  // The second of them alone.
  std::map<uint64_t, api::FinishReason> ends;
  for (int i = 0; i < 12; ++i) {
    const auto frame = Step();
    if (!frame.has_value()) break;
    for (const wire::RowReport& row : frame->rows()) {
      if (row.has_finish()) ends[row.request()] = row.finish().reason();
    }
  }
  EXPECT_EQ(ends, (std::map<uint64_t, api::FinishReason>{{1, api::FINISH_REASON_LENGTH},
                                                         {2, api::FINISH_REASON_ERROR},
                                                         {3, api::FINISH_REASON_LENGTH}}));
}

TEST_F(WorkerCoreTest, AHistoryThatNeverFitsIsRefusedNotRetried) {
  Start({}, /*total_blocks=*/2);
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_FALSE(Step().has_value());
  const auto said = core_->TakePending(now_);
  ASSERT_TRUE(said.has_value());
  EXPECT_THAT(said->rows(0).finish().detail(), HasSubstr("needs 3 KV blocks"));
}

TEST_F(WorkerCoreTest, WhenBlocksAreShortEveryRequestGetsOnOldestFirst) {
  // Few of the prompts fit at once: the oldest get on first, instead of dropping each other's KV in
  // a circle.
  constexpr int kRequests = 10, kNewIds = 6;
  Start({.role = Role::kSmall, .device_key = "cpu", .max_step_tokens = 160}, /*total_blocks=*/60);
  Attach();
  for (int request = 1; request <= kRequests; ++request) {
    Open(OpenOf(request, Spec(absl::StrCat("r", request), "never", kNewIds),
                std::vector<TokenId>(34 + 20 * (request - 1), request)));
  }
  wire::CommandFrame lease = Commands();
  lease.mutable_lease()->set_lease_id(1);
  lease.mutable_lease()->set_max_ms(1000000);
  core_->Apply(lease, now_);
  std::vector<uint64_t> finished;
  int steps = 0;
  while (finished.size() < kRequests) {
    ASSERT_LT(++steps, 500) << finished.size() << " of " << kRequests << " have finished";
    const auto frame = Step();
    ASSERT_TRUE(frame.has_value());
    for (const wire::RowReport& row : frame->rows()) {
      if (!row.has_finish()) continue;
      finished.push_back(row.request());
      Close(row.request());
    }
  }
  EXPECT_TRUE(std::is_sorted(finished.begin(), finished.end()));
  EXPECT_EQ(core_->store().free_blocks(), 60);
}

TEST_F(WorkerCoreTest, ComputesOnASharedDeviceOnlyUnderALease) {
  Start({.device_key = "gpu"});
  Attach();
  Open(OpenOf(1, Spec("a", "never"), {1, 2}));
  EXPECT_FALSE(Step().has_value());
  now_ += absl::Milliseconds(30);
  wire::CommandFrame grant = Commands();
  grant.mutable_lease()->set_lease_id(4);
  grant.mutable_lease()->set_max_ms(3);  // A step takes 2 ms here.
  core_->Apply(grant, now_);
  EXPECT_EQ(core_->counters().lease_wait, absl::Milliseconds(30));
  EXPECT_FALSE(Step()->has_lease_return());
  const auto last = Step();
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->lease_return().lease_id(), 4u);
  EXPECT_EQ(last->lease_return().ready(), 1);
  EXPECT_FALSE(Step().has_value());
}

TEST_F(WorkerCoreTest, SaysOnceOnEachStreamThatItIsLeaving) {
  Start();
  Attach(1);
  core_->BeginDrain();
  EXPECT_TRUE(core_->TakePending(now_)->draining());
  EXPECT_FALSE(core_->TakePending(now_).has_value());
  Attach(2);
  EXPECT_TRUE(core_->TakePending(now_)->draining());
}

TEST_F(WorkerCoreTest, ReturnsALeaseAtOnceWhenNothingIsReady) {
  Start({.device_key = "gpu"});
  Attach();
  wire::CommandFrame grant = Commands();
  grant.mutable_lease()->set_lease_id(4);
  grant.mutable_lease()->set_max_ms(100);
  core_->Apply(grant, now_);
  const auto said = core_->TakePending(now_);
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(said->lease_return().lease_id(), 4u);
  EXPECT_FALSE(core_->TakePending(now_).has_value());
}

}  // namespace
}  // namespace tokenrouter
