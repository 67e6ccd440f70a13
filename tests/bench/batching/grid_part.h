// The parts of `batching_bench` that only simulate. One JSON row per load and a summary each.
// Threads: pure apart from the output.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/batching/batching_options.h"

namespace tokenrouter {

// The model against the best baseline (tools/simulate/load_grid.h).
absl::Status RunGridPart(const BatchingBenchOptions& options);

// The model against the exact optimum, where it can be computed: loads of at most 16 requests.
// Noise is left out, since the solver does not model it.
absl::Status RunExactPart(const BatchingBenchOptions& options);

}  // namespace tokenrouter
