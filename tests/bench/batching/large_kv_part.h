// The cost of a small KV pool of the large model on real processes with timed engines, beside a
// pool that holds every request at its full length, in interleaved bursts. Rows of part
//   large_kv  tokens/s with either pool, their ratio and what the scheduler evicted and rebuilt
// large_kv_bench does the same in simulated time, with more options.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/batching/batching_options.h"

namespace tokenrouter {

absl::Status RunLargeKvPart(const BatchingBenchOptions& options);

}  // namespace tokenrouter
