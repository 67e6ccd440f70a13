// The real pair in its real processes, as parts of engine_bench use it. Threads: none.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tests/bench/engine/engine_options.h"
#include "tests/support/cluster.h"

namespace tokenrouter {

// Both models on one device, in the first of the formats. INVALID_ARGUMENT, naming `part`, when a
// model is missing.
absl::StatusOr<std::unique_ptr<Cluster>> StartPair(const EngineBenchOptions& options,
                                                   const char* part, bool prefix_cache);

}  // namespace tokenrouter
