#include "services/scheduler/server/scheduler_options.h"

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<std::optional<SchedulerOptions>> Parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), "scheduler");
  return ParseSchedulerOptions(static_cast<int>(flags.size()), flags.data());
}

TEST(SchedulerOptions, ReadsLimitsAndPolicies) {
  TR_ASSERT_OK_AND_ASSIGN(
      const auto options,
      Parse({"--max_requests=7", "--max_queued=3", "--credit=8", "--large_pool_gone=small_only",
             "--wait_ms=1500", "--shared_threshold=5", "--drain_ms=2000", "--large_prefill=eager",
             "--place_wait_ms=700", "--rebuild_share=0.25", "--max_ids=4000000000"}));
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->core.max_requests, 7);
  EXPECT_EQ(options->core.max_queued, 3);
  EXPECT_EQ(options->core.max_ids, 4000000000);
  EXPECT_EQ(options->core.credit, 8);
  EXPECT_EQ(options->core.string_stop_credit, 8) << "never above the credit";
  EXPECT_EQ(options->core.large_pool_gone, LargePoolGone::kSmallOnly);
  EXPECT_EQ(options->core.no_large_worker_timeout, absl::Milliseconds(1500));
  EXPECT_EQ(options->core.no_small_worker_timeout, absl::Milliseconds(1500));
  EXPECT_EQ(options->core.shared_threshold, 5);
  EXPECT_EQ(options->core.large_prefill, LargePrefill::kEager);
  EXPECT_EQ(options->core.evict_overdue_after, absl::Milliseconds(700));
  EXPECT_EQ(options->core.rebuild_share, 0.25);
  EXPECT_EQ(options->drain, absl::Seconds(2));
}

TEST(SchedulerOptions, NamesFlagAndRange) {
  EXPECT_THAT(Parse({"--credit=1"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                              AllOf(HasSubstr("--credit"), HasSubstr("4096"))));
  EXPECT_THAT(Parse({"--large_pool_gone=panic"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("small_only")));
}

TEST(SchedulerOptions, ReadsTheBatchingPolicy) {
  using Kind = BatchingPolicy::Kind;
  TR_ASSERT_OK_AND_ASSIGN(const auto standard, Parse({}));
  EXPECT_EQ(standard->core.batching.kind, Kind::kModel);
  EXPECT_EQ(standard->core.defer_cap, absl::Seconds(1));
  TR_ASSERT_OK_AND_ASSIGN(const auto fixed, Parse({"--batching=static", "--m_large=4"}));
  EXPECT_EQ(fixed->core.batching.kind, Kind::kStatic);
  EXPECT_EQ(fixed->core.batching.m_small, 1);
  EXPECT_EQ(fixed->core.batching.m_large, 4);
  TR_ASSERT_OK_AND_ASSIGN(const auto wait, Parse({"--batching=fixed_wait", "--wait_small_ms=0.5",
                                                  "--wait_large_ms=8", "--defer_cap_ms=50"}));
  EXPECT_EQ(wait->core.batching.kind, Kind::kFixedWait);
  EXPECT_EQ(wait->core.batching.wait_small_ms, 0.5);
  EXPECT_EQ(wait->core.batching.wait_large_ms, 8);
  EXPECT_EQ(wait->core.defer_cap, absl::Milliseconds(50));
}

TEST(SchedulerOptions, RefusesBatchingFlagsWithoutEffect) {
  const auto refused = [](std::vector<const char*> flags, const char* why) {
    EXPECT_THAT(Parse(std::move(flags)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused({"--batching=hope"}, "longest_queue");
  refused({"--m_large=4"}, "set --batching=static");
  refused({"--batching=greedy", "--wait_large_ms=4"}, "set --batching=fixed_wait");
  refused({"--batching=static", "--m_large=4", "--shared_threshold=3"}, "set --batching=model");
  refused({"--batching=fixed_wait", "--wait_large_ms=60", "--defer_cap_ms=50"}, "raise the cap");
}

}  // namespace
}  // namespace tokenrouter
