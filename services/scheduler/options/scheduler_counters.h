// What the core has counted since its start, for metrics and tests. Plain numbers that only grow;
// the server publishes their differences. Threads: lives on the scheduler's loop.
#pragma once

#include <array>
#include <cstdint>

#include "libs/batching_model/wait_outcome.h"
#include "libs/tokens/token_types.h"
#include "services/scheduler/options/reasons.h"

namespace tokenrouter {

struct SchedulerCounters {
  std::array<uint64_t, 3> tokens{};          // By Author.
  std::array<uint64_t, 3> overrun_tokens{};  // By Author: committed beyond the finish.
  std::array<uint64_t, kRoles> handoffs{};
  std::array<uint64_t, kRejectReasons> rejected{};
  std::array<uint64_t, kDropReasons> dropped{};
  std::array<std::array<uint64_t, kReopenCauses>, kRoles> reopened{};
  std::array<std::array<uint64_t, kLeaseOutcomes>, kRoles> leases{};
  // On dedicated devices: releases of the large side. On shared devices: leases of either side.
  std::array<WaitCounts, kRoles> deferrals{};
  std::array<uint64_t, kEvictionNeeds> evicted{};
  uint64_t rebuilt_ids = 0;           // Ids sent again to large workers after an eviction.
  uint64_t background_opens = 0;      // Large sides opened before their first decode grant.
  uint64_t forwarded_ids = 0;         // Ids sent to large workers between decode grants.
  uint64_t large_alone_requests = 0;  // Requests admitted to large-only service.
  uint64_t finished = 0;              // Requests that ended with a Finish.
  uint64_t frames_in = 0;
  uint64_t frames_out = 0;
};

}  // namespace tokenrouter
