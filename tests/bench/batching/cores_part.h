// The real cores of scheduler and workers on two devices in simulated time, beside the simulator
// with which the policies were chosen. It shows without machine noise what a rule of the real
// system loses. Only loads of more than one device and without noise are run. Rows of part
//   cores        tokens/s of one policy, its share of the simulator's
//   cores_ratio  the model over a baseline
// Threads: none.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/batching/batching_options.h"

namespace tokenrouter {

absl::Status RunCoresPart(const BatchingBenchOptions& options);

}  // namespace tokenrouter
