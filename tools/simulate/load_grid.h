// The model against the baselines over many loads, simulated: for each load the tuner's policy and
// the best of greedy, static, fixed wait and longest queue at their best parameters, all on random
// numbers that none of them was chosen on, until the error of their ratio is small. Threads: pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libs/batching_model/simulator.h"

namespace tokenrouter {

struct LoadGrid {
  std::vector<std::string> sets = {"h200", "8b", "roofline", "cpu", "vnni"};
  std::vector<int> devices = {1, 2};
  std::vector<int> requests = {1, 2, 4, 16, 64, 128, 512};
  std::vector<double> r = {.02, .1, .4};
  std::vector<double> noise = {0, .05};
  // As SimulationSetup.
  int32_t small_workers = 1;
  int32_t large_workers = 1;
  bool distributed = false;
  double hop_ms = 0;
  double least_error = .001;     // Standard error of a ratio at which its simulations end.
  int64_t most_steps = 4000000;  // Per policy and load, even if the error is larger.
};

struct Load {
  std::string set;
  int devices = 2;
  SimulationSetup setup;
};

struct LoadComparison {
  BatchingPolicy model;
  BatchingPolicy best_baseline;
  double model_per_s = 0;  // Committed tokens.
  double baseline_per_s = 0;
  double ratio = 1;        // Of the two.
  double ratio_error = 0;  // Standard error.
};

// INVALID_ARGUMENT for a set that is not named in libs/synthetic/step_curve.h.
absl::StatusOr<std::vector<Load>> LoadsOf(const LoadGrid& grid);

// Committed tokens per second on the random numbers of the comparison.
absl::StatusOr<double> FreshRate(const SimulationSetup& setup, const BatchingPolicy& policy);

absl::StatusOr<LoadComparison> CompareWithBaselines(const Load& load, const LoadGrid& grid);

}  // namespace tokenrouter
