// WaitOutcome is why rows that could have waited for a fuller batch ran, as the scheduler and the
// workers count it.
#pragma once

#include <array>
#include <cstdint>

namespace tokenrouter {

enum class WaitOutcome : uint8_t {
  kImmediate,  // No row was worth waiting for.
  kSize,       // Enough rows are ready, or the step is full.
  kBalance,    // Waiting did not pay, or the awaited rows have arrived.
  kTimer,      // The time to wait is over, or the other side's step is overdue.
  kIdle,       // The other side is idle.
  kBound,      // The cap, max_defer_ms, a latency target, or the other side's lease was cut short.
};
inline constexpr int kWaitOutcomes = 6;
// For metrics.
inline constexpr const char* kWaitOutcomeNames[kWaitOutcomes] = {"immediate", "size", "balance",
                                                                 "timer",     "idle", "bound"};
using WaitCounts = std::array<uint64_t, kWaitOutcomes>;

}  // namespace tokenrouter
