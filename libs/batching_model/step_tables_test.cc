#include "libs/batching_model/step_tables.h"

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

TEST(StepTablesTest, FoldsTheIdsOfALargeRowIntoItsCost) {
  const StepCost cost = [](int rows, int64_t ids) {
    return 15 + .02 * rows + .128 * static_cast<double>(ids);
  };
  const std::vector<double> small = SmallStepTimes(cost, 8);
  EXPECT_EQ(small.size(), 9u);
  EXPECT_NEAR(small[8], 15 + 8 * .148, 1e-9);
  EXPECT_NEAR(LargeStepTimes(cost, 8, .1, 1)[8], 15 + 8 * (.02 + 1.28), 1e-9);
  EXPECT_NEAR(LargeStepTimes(cost, 1, .4, 1)[1], 15 + .02 + 2.5 * .128, 1e-9);  // Half an id.
}

TEST(StepTablesTest, MeanIdsPerLargeRowIsWhatTheSimulationSees) {
  const StepCost cost = [](int, int64_t) { return 1.0; };
  for (const double q : {1.0, 0.5}) {
    SimulationSetup setup{.small = cost, .large = cost, .requests = 16, .r = .1, .q = q};
    TR_ASSERT_OK_AND_ASSIGN(const SimulationResult result, Simulate(setup, {}));
    EXPECT_NEAR(result.ids_per_large_row / MeanIdsPerLargeRow(.1, q), 1, 0.02) << q;
  }
}

}  // namespace
}  // namespace tokenrouter
