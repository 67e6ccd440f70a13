// Which sequences of a full large worker are evicted for another. Pure: a table in, indices out.
//   Value   A sequence is the better victim the longer it is until its next visit and the fewer
//           ids there are to recompute: expected time until the visit / ids. Never by last use
//           alone.
//   Price   Each of n residents has 1/n of the device. A reservation that is idle for t costs the
//           device the work of t/n; evicting it costs the recomputation. So eviction pays when
//           t >= n x recomputation. With many short idle times and long histories it never pays:
//           then requests wait, and a resident stays until it ends.
//   Bound   An overdue request may also evict a resident that has been there for so long that its
//           recomputation is at most a given share of its part of the device. So no request waits
//           without end, and recomputation stays a bounded share of the work.
// A reservation that was opened in the background and has not been used gives way to any request.
// Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "libs/tokens/token_types.h"
#include "services/scheduler/options/reasons.h"

namespace tokenrouter {

// A sequence that does not hold the decode grant.
struct EvictionCandidate {
  Position known = 0;  // Ids to recompute if it comes back.
  int64_t blocks = 0;
  absl::Duration until_visit;   // Expected time until its next visit.
  absl::Duration resident_for;  // Time since it was opened.
  bool used = true;             // False: opened in the background, not visited yet.
};

struct EvictionTerms {
  // kPays: evict only where it pays. kOverdue: also residents whose residency amortised their
  // prefill. kGrowth: at any price.
  EvictionNeed need = EvictionNeed::kPays;
  int64_t blocks = 0;  // Blocks to be freed; 0: a slot is enough.
  int32_t residents = 1;
  double id_ms = 0;            // The cost of recomputing one id.
  double rebuild_share = 0.1;  // The share of a resident's part of the device.
};

// Indices of the victims, as few as the order by value allows; empty when the terms do not allow
// enough evictions.
std::vector<size_t> ChooseVictims(std::span<const EvictionCandidate> candidates,
                                  const EvictionTerms& terms);

}  // namespace tokenrouter
