// Scores batching policies for a load by short simulations in two rounds: all candidates briefly,
// the best few at length. Every candidate of a round sees the same random numbers. Threads: pure.
// Cost: bounded by the steps and rows simulated, independently of the load.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/batching_model/simulator.h"

namespace tokenrouter {

struct TunerOptions {
  // Per candidate of the first round, and of the few that reach the second.
  int64_t first_steps = 6000;
  int64_t first_rows = 200000;
  int64_t final_steps = 20000;
  int64_t final_rows = 800000;
  int finalists = 3;          // Of the first round.
  double least_jitter = .02;  // Steps vary at least this much, so that runs do not lock in phase.
  double least_gain = .003;   // Below this greedy stays.
  uint64_t seed = 1;
};

struct ScoredPolicy {
  BatchingPolicy policy;
  SimulationResult result;
};

inline bool Faster(const ScoredPolicy& a, const ScoredPolicy& b) {
  return a.result.committed_per_s > b.result.committed_per_s;
}

// Each policy in a long simulation, in the order of `policies`. It sets the setup's duration,
// limits, seed and start itself. INVALID_ARGUMENT as Simulate.
absl::StatusOr<std::vector<ScoredPolicy>> ScoreAtLength(const SimulationSetup& setup,
                                                        const std::vector<BatchingPolicy>& policies,
                                                        const TunerOptions& options);

// The same of the few that were best in short simulations of all, the fastest there first.
absl::StatusOr<std::vector<ScoredPolicy>> ScoreFinalists(
    const SimulationSetup& setup, const std::vector<BatchingPolicy>& policies,
    const TunerOptions& options);

}  // namespace tokenrouter
