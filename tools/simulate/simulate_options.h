// The options of `simulate`: step curves, loads and policies, as flags
// (libs/config/settings.h).
// --n, --r and --policy take comma-separated lists; each combination is one cell. Threads: none.
// Errors: INVALID_ARGUMENT naming the flag, its value and the range.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/batching_model/simulator.h"
#include "libs/synthetic/step_curve.h"

namespace tokenrouter {

struct SimulateOptions {
  std::string set = "h200";  // Name of the curves in the rows: "custom" where one was given.
  StepCurve small;
  StepCurve large;
  std::vector<int32_t> requests = {1, 4, 16, 64, 256};
  std::vector<double> r = {0.1};
  std::vector<BatchingPolicy::Kind> policies;
  double q = 1.0;
  int32_t devices = 2;
  int32_t small_workers = 1;
  int32_t large_workers = 1;
  bool distributed = false;
  double noise = 0.03;
  double hop_ms = 0.0;
  double max_step_ms = 0.0;
  double seconds = 1000.0;  // Of simulated time, per cell.
  uint64_t seed = 1;
  bool json = false;
  std::string plot;  // Path of an SVG; empty: none.

  // Load of one cell.
  SimulationSetup Setup(int requests, double r) const;
};

// nullopt when --help was asked for and printed.
absl::StatusOr<std::optional<SimulateOptions>> ParseSimulateOptions(int argc,
                                                                    const char* const* argv);

}  // namespace tokenrouter
