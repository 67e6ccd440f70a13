// Chooses a batching policy by short simulations of the present load (batching model, section 5b):
// greedy against a few betas on two devices, or against thresholds on a shared one. Meant for a
// background thread: no call of the serving path may wait for it. Threads: pure. Cost: bounded by
// steps and rows simulated, tens of milliseconds; only the exact threshold search adds to that.
#pragma once

#include "absl/status/statusor.h"
#include "libs/batching_model/simulator.h"

namespace tokenrouter {

struct TunerOptions {
  // Per candidate of the first round, and of the few that reach the second.
  int64_t first_steps = 6000;
  int64_t first_rows = 200000;
  int64_t final_steps = 20000;
  int64_t final_rows = 800000;
  int finalists = 3;          // Besides greedy.
  double least_jitter = .02;  // Steps vary at least so much, lest the runs lock into one phase.
  double least_gain = .003;   // Below this greedy stays.
  uint64_t seed = 1;
};

struct TunedPolicy {
  BatchingPolicy policy;
  SimulationResult predicted;  // Under `policy`.
  double greedy_committed_per_s = 0;
};

// The setup's duration, limits, seed and start are the tuner's own. INVALID_ARGUMENT as Simulate.
absl::StatusOr<TunedPolicy> Tune(const SimulationSetup& setup, const TunerOptions& options = {});

}  // namespace tokenrouter
