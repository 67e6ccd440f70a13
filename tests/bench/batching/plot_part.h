// Draws what earlier runs of `batching_bench` printed, as an SVG. Threads: none.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/batching/batching_options.h"

namespace tokenrouter {

// From grid rows: the model's rate over the best baseline's, a dot per load. INVALID_ARGUMENT where
// --rows cannot be read or has no such rows, UNAVAILABLE where --plot cannot be written.
absl::Status PlotGrid(const BatchingBenchOptions& options);

// From timed rows: measured over simulated rate, a line per set, devices, r and policy.
absl::Status PlotTimed(const BatchingBenchOptions& options);

}  // namespace tokenrouter
