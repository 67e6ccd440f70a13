// How much memory this process may still take: the machine's MemAvailable, or what its control
// group leaves, whichever is less.
// Threads: any. Units: bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace tokenrouter {

// Largest int64 when the system does not say.
int64_t AvailableMemoryBytes();

// RESOURCE_EXHAUSTED with both numbers when `bytes` for `what` are more than what is available.
absl::Status RequireAvailableMemory(int64_t bytes, std::string_view what);

}  // namespace tokenrouter
