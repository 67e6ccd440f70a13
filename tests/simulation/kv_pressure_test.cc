// A large pool with a quarter of the KV that all requests need, on the real cores.
#include <gtest/gtest.h>

#include "libs/status/status_matchers.h"
#include "tests/simulation/closed_loop.h"

namespace tokenrouter::simulation {
namespace {

ClosedLoopOptions Options(double pool) {
  ClosedLoopOptions options;
  options.pool = pool;
  options.rounds = 4;
  options.core.large_prefill = LargePrefill::kIdle;
  return options;
}

TEST(KvPressure, AQuarterOfTheKvLosesNoRequestAndSpendsLittleOnRecomputation) {
  TR_ASSERT_OK_AND_ASSIGN(const ClosedLoopResult full, RunClosedLoop(Options(1)));
  TR_ASSERT_OK_AND_ASSIGN(const ClosedLoopResult quarter, RunClosedLoop(Options(0.25)));
  EXPECT_EQ(full.failed, 0);
  EXPECT_EQ(quarter.failed, 0);
  EXPECT_EQ(full.answers, quarter.answers);
  EXPECT_EQ(full.counters.rebuilt_ids, 0u);
  // As good as nine or ten requests on a pool that holds them; no more fit at once.
  EXPECT_GT(quarter.committed_per_s, 0.47 * full.committed_per_s);
  EXPECT_LT(quarter.counters.rebuilt_ids, 64u * quarter.answers.size());
}

TEST(KvPressure, NoRequestWaitsForLongBesideLongAnswers) {
  ClosedLoopOptions options = Options(0.25);
  options.requests = 8;
  options.new_tokens = 600;
  options.core.evict_overdue_after = absl::Seconds(1);
  options.core.rebuild_share = 0.5;
  TR_ASSERT_OK_AND_ASSIGN(const ClosedLoopResult result, RunClosedLoop(options));
  EXPECT_EQ(result.failed, 0);
  EXPECT_LT(result.longest_wait, absl::Seconds(8));
}

TEST(KvPressure, ASharedDeviceAndEveryPrefillFinishAll) {
  for (const bool shared : {false, true}) {
    for (const LargePrefill when :
         {LargePrefill::kLazy, LargePrefill::kIdle, LargePrefill::kEager}) {
      ClosedLoopOptions options = Options(0.25);
      options.requests = 8;
      options.shared_device = shared;
      options.core.large_prefill = when;
      TR_ASSERT_OK_AND_ASSIGN(const ClosedLoopResult result, RunClosedLoop(options));
      EXPECT_EQ(result.failed, 0);
      EXPECT_EQ(result.answers.size(), 32u);
    }
  }
}

}  // namespace
}  // namespace tokenrouter::simulation
