// WaitOutcome is why rows that could have waited for a fuller batch ran, as the scheduler and the
// workers count it.
#pragma once

#include <array>
#include <cstdint>

namespace tokenrouter {

enum class WaitOutcome : uint8_t {
  kImmediate,  // There was nothing to wait for.
  kSize,       // Enough rows are ready, or the step is full.
  kBalance,    // Waiting did not pay, or what was waited for has come.
  kTimer,      // The time to wait is over, or the other side's step is overdue.
  kIdle,       // The other side has nothing.
  kBound,      // The cap, max_defer_ms, a latency target, or the other side's turn was cut off.
};
inline constexpr int kWaitOutcomes = 6;
// For metrics.
inline constexpr const char* kWaitOutcomeNames[kWaitOutcomes] = {"immediate", "size", "balance",
                                                                 "timer",     "idle", "bound"};
using WaitCounts = std::array<uint64_t, kWaitOutcomes>;

}  // namespace tokenrouter
