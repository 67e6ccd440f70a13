#include "tools/simulate/optimum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "libs/batching_model/shared_threshold.h"
#include "libs/batching_model/step_tables.h"
#include "libs/batching_offline/baseline_search.h"
#include "libs/batching_offline/exact_solver.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

constexpr int kTwoDevices = 16;
constexpr int kSharedDevice = 512;
constexpr int kSharedPartialReturn = 64;
// Of the simulation behind a gap: about .2 % of standard error.
constexpr int64_t kGapSteps = 400000, kGapRows = 4000000;
// Grid steps in the longest step. Among these the grid that rounds the step times best is taken.
constexpr int kCoarsest = 150, kFinest = 400;

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

std::vector<double> InGridSteps(StepTimes times, double grid) {
  std::vector<double> steps(times.size(), 0.0);
  for (size_t b = 1; b < times.size(); ++b) {
    steps[b] = std::max(1.0, std::round(times[b] / grid));
  }
  return steps;
}

StepCost ByRows(std::vector<double> times) {
  return [times = std::move(times)](int rows, int64_t) {
    return times[std::min(static_cast<size_t>(rows), times.size() - 1)];
  };
}

bool Solvable(const SimulationSetup& setup) {
  const int most = !setup.shared_device ? kTwoDevices
                   : setup.q < 1        ? kSharedPartialReturn
                                        : kSharedDevice;
  const bool one_pair = setup.small_workers == 1 && setup.large_workers == 1;
  return setup.requests <= most && setup.hop_ms == 0 && setup.max_step_ms == 0 && one_pair;
}

}  // namespace

absl::StatusOr<std::optional<Optimum>> FindOptimum(const SimulationSetup& setup) {
  TR_RETURN_IF_ERROR(CheckSetup(setup));
  if (!Solvable(setup)) return std::nullopt;
  const int n = setup.requests;
  const std::vector<double> small = SmallStepTimes(setup.small, n);
  const std::vector<double> large = LargeStepTimes(setup.large, n, setup.r, setup.q);
  const double grid = BestGrid(small, large);
  const std::vector<double> small_steps = InGridSteps(small, grid);
  const std::vector<double> large_steps = InGridSteps(large, grid);
  double rows_per_s = 0;
  if (setup.shared_device) {
    const SharedDeviceModel model{small_steps, large_steps, n, setup.r, setup.q};
    rows_per_s = ThresholdRate(model, BestThreshold(model));
  } else {
    const absl::StatusOr<ExactSolution> solution = SolveTwoDevices(
        {.small = small_steps, .large = large_steps, .requests = n, .r = setup.r, .q = setup.q});
    if (absl::IsInternal(solution.status())) return std::nullopt;
    TR_RETURN_IF_ERROR(solution.status());
    rows_per_s = solution->rows_per_s;
  }
  Optimum optimum{.committed_per_s = rows_per_s * CommittedPerRow(setup.r, setup.q) / grid,
                  .idealised = setup,
                  .grid_ms = grid};
  optimum.idealised.small = ByRows(small_steps);
  optimum.idealised.large = ByRows(large_steps);
  optimum.idealised.noise_cv = 0;
  optimum.idealised.duration_ms = std::numeric_limits<double>::max();
  optimum.idealised.max_steps = kGapSteps;
  optimum.idealised.max_rows = kGapRows;
  return optimum;
}

absl::StatusOr<double> GapToOptimum(const Optimum& optimum, BatchingPolicy::Kind kind) {
  const SimulationSetup& load = optimum.idealised;
  TR_ASSIGN_OR_RETURN(const BatchingPolicy policy, BestOfFamily(load, kind));
  TR_ASSIGN_OR_RETURN(const SimulationResult result, Simulate(load, policy));
  const double committed = result.rows_per_s * CommittedPerRow(load.r, load.q) / optimum.grid_ms;
  return 1.0 - committed / optimum.committed_per_s;
}

}  // namespace tokenrouter
