// The rate at which `threads` threads together read a buffer far larger than any cache. Threads:
// starts its own. Units: bytes per second, best of a few passes.
#pragma once

#include "absl/status/statusor.h"
#include "tests/bench/engine_options.h"

namespace tokenrouter {

// RESOURCE_EXHAUSTED when the buffer does not fit.
absl::StatusOr<double> ReadBandwidth(int threads);

absl::Status RunBandwidthPart(const EngineBenchOptions& options);

}  // namespace tokenrouter
