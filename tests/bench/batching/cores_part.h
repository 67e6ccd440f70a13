// The real cores of scheduler and workers on two devices in simulated time, beside the simulator
// that the policies were chosen with: what a rule of the real system loses shows without the noise
// of a machine. Loads of more than one device and no noise only. Rows of part
//   cores        tokens/s of one policy, its share of the simulator's
//   cores_ratio  the model over a baseline
// Threads: none.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/batching/batching_options.h"

namespace tokenrouter {

absl::Status RunCoresPart(const BatchingBenchOptions& options);

}  // namespace tokenrouter
