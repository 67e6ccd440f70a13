#include "tools/simulate/cell.h"

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;
using ::testing::HasSubstr;

SimulateOptions Options(int devices) {
  SimulateOptions options;
  options.small = *StepCurve::Parse("h200", Role::kSmall);
  options.large = *StepCurve::Parse("h200", Role::kLarge);
  options.policies = {Kind::kModel, Kind::kGreedy};
  options.devices = devices;
  options.seconds = 200;
  return options;
}

TEST(CellTest, ASharedDeviceGainsFromItsThreshold) {
  TR_ASSERT_OK_AND_ASSIGN(const auto cells, SimulateLoad(Options(1), 16, .1));
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_NEAR(cells[0].MultipleOfLargeAlone(), 1.95, 0.06);
  EXPECT_NEAR(cells[1].MultipleOfLargeAlone(), .99, 0.03);
  EXPECT_LT(cells[0].gap_to_optimum.value(), 0.012);
  EXPECT_GT(cells[1].gap_to_optimum.value(), 0.4);
}

TEST(CellTest, RowsSayWhatWasAskedAndWhatWasUsed) {
  TR_ASSERT_OK_AND_ASSIGN(const auto cells, SimulateLoad(Options(2), 1, .1));
  const boost::json::object row = JsonRow(cells[0], Options(2));
  EXPECT_EQ(row.at("policy").as_string(), "model");
  EXPECT_EQ(row.at("parameters").as_string(), "model: greedy");  // A single request never waits.
  EXPECT_NEAR(row.at("multiple_of_large_alone").as_double(), 3.25, 0.1);
  EXPECT_TRUE(row.at("gap_to_optimum").is_double());
  EXPECT_THAT(TableLine(cells[1], Options(2)), HasSubstr("greedy"));
}

TEST(CellTest, NoOptimumIsANullAndADash) {
  SimulateOptions options = Options(2);
  options.policies = {Kind::kGreedy};
  TR_ASSERT_OK_AND_ASSIGN(const auto cells, SimulateLoad(options, 64, .1));
  EXPECT_TRUE(JsonRow(cells[0], options).at("gap_to_optimum").is_null());
  EXPECT_THAT(TableLine(cells[0], options), HasSubstr(" - "));
}

}  // namespace
}  // namespace tokenrouter
