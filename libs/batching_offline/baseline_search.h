// The best member of a family of policies for a load, found by short simulations, so that the model
// is compared with baselines at their best. Threads: pure. Cost: tens of simulations of the size of
// the tuner's first round, and a few of its second.
#pragma once

#include "absl/status/statusor.h"
#include "libs/batching_model/simulator.h"

namespace tokenrouter {

// kModel: what the tuner picks. kStatic: thresholds as shares of a worker's requests. kFixedWait:
// waits as multiples of a small step of one row. The others have no parameters. INVALID_ARGUMENT as
// Simulate.
absl::StatusOr<BatchingPolicy> BestOfFamily(const SimulationSetup& setup,
                                            BatchingPolicy::Kind kind);

}  // namespace tokenrouter
