// The exact optimum of two devices for few requests: the semi-Markov decision problem of the
// batching model (section 1) on a time grid, by relative value iteration. Policies are measured
// against it; it never runs while serving. Steps last their mean, q and r are
// known, and each step takes every ready row. Units: milliseconds in, rows (model passes) per
// second out; CommittedPerRow turns rows into committed tokens. Threads: pure functions. Cost:
// O(N^3 * longest step / grid) per sweep, some hundred sweeps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/batching_model/step_times.h"

namespace tokenrouter {

struct ExactProblem {
  StepTimes small;  // At least requests + 1 entries each.
  StepTimes large;
  int requests = 1;
  double r = 0.1;
  double q = 1.0;
  double grid_ms = 1.0;  // Durations are rounded to whole multiples, at least one.
  // Instead of the optimum: the rate of waiting for these numbers of rows on each side (1, 1:
  // greedy).
  struct Thresholds {
    int small = 1;
    int large = 1;
  };
  std::optional<Thresholds> fixed;
};

// The launch decision when both sides are idle.
enum class BothIdle : uint8_t { kSmall = 1, kLarge = 2, kBoth = 3 };

struct ExactSolution {
  double rows_per_s = 0;
  double simulated_rows_per_s = 0;  // Of the same policy: the check that the iteration converged.
  int sweeps = 0;
  std::vector<BothIdle> both_idle;  // By rows ready on the small side.
  // tau*, in grid steps, by [side][own ready][rows running on the other side]: the side waits iff
  // the other's step ends sooner than this. 0: never waits.
  std::vector<std::vector<int>> wait_below[2];
};

// INVALID_ARGUMENT naming what is out of range (requests 1 to 24, at most 4096 grid steps in the
// longest step); INTERNAL when no damping makes the iteration agree with the simulation.
absl::StatusOr<ExactSolution> SolveTwoDevices(const ExactProblem& problem);

}  // namespace tokenrouter
