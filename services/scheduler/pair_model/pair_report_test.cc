#include "services/scheduler/pair_model/pair_report.h"

#include <gtest/gtest.h>

#include "libs/status/status_matchers.h"
#include "services/scheduler/pair_model/testing/taught_curve.h"

namespace tokenrouter {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(PairReportTest, ReportsWhatIsSeenPlannedAndDecided) {
  PairModel model{PairModelOptions{}};
  wire::PairModel report;
  FillPairModel(model, 0, kStart, &report);
  EXPECT_FALSE(report.has_plan());
  EXPECT_EQ(report.service_mode(), "routed");
  Teach(&model.mutable_seen(), Role::kSmall, 10, 1, 1);
  Teach(&model.mutable_seen(), Role::kLarge, 40, .5, 3);
  model.mutable_seen().ObserveRows(Role::kSmall, 1000, 100);
  model.mutable_seen().ObserveHandoff(absl::Milliseconds(2));
  const auto wanted = model.Wanted(8, kStart);
  ASSERT_TRUE(wanted.has_value());
  TR_ASSERT_OK_AND_ASSIGN(const PairPlan plan, MakePlan(*wanted));
  model.Adopt(plan, absl::Milliseconds(5), kStart);
  FillPairModel(model, 8, kStart + absl::Seconds(2), &report);
  EXPECT_NEAR(report.small().base_ms() + report.small().row_ms() + report.small().id_ms(), 12, .1);
  EXPECT_NEAR(report.routed().mean(), .1, .01);
  EXPECT_LT(report.routed().lower(), .1);
  EXPECT_DOUBLE_EQ(report.handoff_latency_ms(), 2);
  EXPECT_EQ(report.plan().requests(), 8);
  EXPECT_EQ(report.plan().age_seconds(), 2);
  EXPECT_GT(report.plan().routed_per_s(), 0);
  EXPECT_FALSE(report.policy().empty());
}

}  // namespace
}  // namespace tokenrouter
