#include "tools/simulate/optimum.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "libs/batching_model/exact_solver.h"
#include "libs/batching_model/shared_threshold.h"
#include "libs/batching_model/step_tables.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

constexpr int kTwoDevices = 16;
constexpr int kSharedDevice = 512;
constexpr int kSharedPartialReturn = 64;
// Grid steps in the longest step. Among these the grid that rounds the step times best is taken.
constexpr int kCoarsest = 150, kFinest = 600;

// Largest relative rounding error of the step times on the grid.
double RoundingError(StepTimes times, double grid) {
  double worst = 0;
  for (const double time : times.subspan(1)) {
    const double rounded = std::max(1.0, std::round(time / grid)) * grid;
    worst = std::max(worst, std::abs(rounded / time - 1));
  }
  return worst;
}

double BestGrid(StepTimes small, StepTimes large) {
  const double longest = std::max(*std::max_element(small.begin(), small.end()),
                                  *std::max_element(large.begin(), large.end()));
  double best = longest / kFinest, least = INFINITY;
  for (int steps = kCoarsest; steps <= kFinest; ++steps) {
    const double grid = longest / steps;
    const double error = std::max(RoundingError(small, grid), RoundingError(large, grid));
    if (error < least) {
      least = error;
      best = grid;
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<std::optional<double>> OptimalCommittedRate(const SimulationSetup& setup) {
  TR_RETURN_IF_ERROR(CheckSetup(setup));
  const int most = !setup.shared_device ? kTwoDevices
                   : setup.q < 1        ? kSharedPartialReturn
                                        : kSharedDevice;
  if (setup.requests > most || setup.hop_ms > 0) return std::nullopt;
  const std::vector<double> small = SmallStepTimes(setup.small, setup.requests);
  const std::vector<double> large = LargeStepTimes(setup.large, setup.requests, setup.r, setup.q);
  const double per_row = CommittedPerRow(setup.r, setup.q);
  if (setup.shared_device) {
    const SharedDeviceModel model{small, large, setup.requests, setup.r, setup.q};
    return per_row * ThresholdRate(model, BestThreshold(model));
  }
  ExactProblem problem{.small = small,
                       .large = large,
                       .requests = setup.requests,
                       .r = setup.r,
                       .q = setup.q,
                       .grid_ms = BestGrid(small, large)};
  TR_ASSIGN_OR_RETURN(const ExactSolution solution, SolveTwoDevices(problem));
  return per_row * solution.rows_per_s;
}

}  // namespace tokenrouter
