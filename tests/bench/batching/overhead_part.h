// The cost of routing on real processes, beyond the steps themselves: latency of a routed token
// with idle and with busy cores, and processor time per token over context and number of requests.
// Timed engines whose steps all last the same. One JSON row per load. Threads: the caller's, and
// those of submit_loop.h.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/batching/batching_options.h"

namespace tokenrouter {

absl::Status RunOverheadPart(const BatchingBenchOptions& options);

}  // namespace tokenrouter
