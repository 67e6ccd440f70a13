// Chooses a batching policy by short simulations of the present load (batching model, section 5b):
// greedy against thresholds on a shared device, against the delay balance and static thresholds on
// two.
// Meant for a background thread: no call of the serving path may wait for it. Threads: pure. Cost:
// bounded by steps and rows simulated, tens of milliseconds; only the exact threshold search adds
// to that.
#pragma once

#include "absl/status/statusor.h"
#include "libs/batching_model/candidate_search.h"
#include "libs/batching_model/simulator.h"

namespace tokenrouter {

struct TunedPolicy {
  BatchingPolicy policy;
  SimulationResult predicted;  // Under `policy`.
  double greedy_committed_per_s = 0;
};

// The tuner sets the setup's duration, limits, seed and start itself. INVALID_ARGUMENT as Simulate.
absl::StatusOr<TunedPolicy> Tune(const SimulationSetup& setup, const TunerOptions& options = {});

}  // namespace tokenrouter
