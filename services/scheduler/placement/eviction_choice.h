// Which sequences of a full large worker make room for another. Pure: a table in, indices out.
//   Value   A sequence is the better victim the longer its next visit is away and the less there
//           is to compute again: expected time until the visit / ids. Never by last use alone.
//   Price   Each of n residents has 1/n of the device. A place that stands idle for t costs the
//           device the work of t/n; giving it away costs the rebuild. So giving it away pays when
//           t >= n x rebuild. With many short idle times and long histories it never does: then
//           turns wait, and a resident stays until it ends.
//   Bound   A turn that has waited for too long may also take the place of a resident that has been
//           there long enough for its own rebuild to be at most a given share of its part of the
//           device. So nobody waits for ever and the rebuilds stay a bounded share of the work.
// A place that was opened ahead and not visited yet gives way to any turn. Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "libs/tokens/token_types.h"
#include "services/scheduler/options/scheduler_counters.h"

namespace tokenrouter {

// A sequence that does not hold the decode grant.
struct EvictionCandidate {
  Position known = 0;  // Ids to compute again should it come back.
  int64_t blocks = 0;
  absl::Duration until_visit;   // Expected.
  absl::Duration resident_for;  // Since it was opened.
  bool used = true;             // False: opened ahead, not visited yet.
};

struct EvictionTerms {
  // kPays: only where it pays; kOverdue: also where the resident has had its time; kGrowth: at any
  // price.
  EvictionNeed need = EvictionNeed::kPays;
  int64_t blocks = 0;  // To be freed; 0: a seat is enough.
  int32_t residents = 1;
  double id_ms = 0;            // What it costs to compute one id again.
  double rebuild_share = 0.1;  // Of a resident's part of the device.
};

// Indices of the victims, fewest that the order by value allows; empty when room cannot be made
// under the terms.
std::vector<size_t> ChooseVictims(std::span<const EvictionCandidate> candidates,
                                  const EvictionTerms& terms);

}  // namespace tokenrouter
