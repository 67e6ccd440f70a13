#include "tools/simulate/load_grid.h"

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

// A small part of the grid of `./tokenrouter bench batching`.
TEST(LoadGridTest, TheModelIsNeverBelowTheBestBaselineByMoreThanOnePercent) {
  LoadGrid grid{.requests = {2, 16}, .r = {.1}, .noise = {.05}, .least_error = .002};
  grid.most_steps = 400000;
  TR_ASSERT_OK_AND_ASSIGN(const std::vector<Load> loads, LoadsOf(grid));
  EXPECT_EQ(loads.size(), 20u);
  for (const Load& load : loads) {
    SCOPED_TRACE(::testing::Message() << load.set << " " << load.devices << " devices, "
                                      << load.setup.requests << " requests");
    TR_ASSERT_OK_AND_ASSIGN(const LoadComparison comparison, CompareWithBaselines(load, grid));
    EXPECT_GT(comparison.ratio, 0.99);
    EXPECT_LT(comparison.ratio_error, 0.003);
  }
}

TEST(LoadGridTest, ASharedDeviceOfGpusDoublesOverLargeFirst) {
  const LoadGrid grid{.sets = {"h200"}, .devices = {1}, .requests = {16}, .r = {.1}, .noise = {0}};
  TR_ASSERT_OK_AND_ASSIGN(const std::vector<Load> loads, LoadsOf(grid));
  TR_ASSERT_OK_AND_ASSIGN(const LoadComparison comparison, CompareWithBaselines(loads[0], grid));
  TR_ASSERT_OK_AND_ASSIGN(const SimulationResult greedy, Simulate(loads[0].setup, {}));
  EXPECT_NEAR(comparison.model_per_s / greedy.committed_per_s, 1.97, 0.06);
}

TEST(LoadGridTest, RefusesAnUnknownSet) {
  EXPECT_THAT(LoadsOf({.sets = {"a100"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("a100")));
}

}  // namespace
}  // namespace tokenrouter
