// What a small KV pool of the large model costs on real processes with timed engines, beside a pool
// that holds every request at its full length, in interleaved bursts. Rows of part
//   large_kv  tokens/s with either pool, their ratio and what the scheduler evicted and rebuilt
// The same in simulated time, with more knobs, is large_kv_bench.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/batching/batching_options.h"

namespace tokenrouter {

absl::Status RunLargeKvPart(const BatchingBenchOptions& options);

}  // namespace tokenrouter
