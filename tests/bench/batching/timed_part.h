// The model against baselines on real scheduler and worker processes with timed engines, through
// Submit, in interleaved bursts (A B C C B A ...). One JSON row per policy and load with its
// simulated and measured rate, one per baseline with the model's ratio to it and the 95 % interval.
// Threads: the caller's, and those of submit_loop.h.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/batching/batching_options.h"

namespace tokenrouter {

absl::Status RunTimedPart(const BatchingBenchOptions& options);

}  // namespace tokenrouter
