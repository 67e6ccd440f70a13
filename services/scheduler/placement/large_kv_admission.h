// LargeKvAdmission keeps the account of the KV reservations on large workers (kv_ledger.h), and
// frees capacity there by closing sides that do not hold the decode grant (eviction_choice.h).
// Ownership: the state must outlive it. Threads: lives on the scheduler's loop. Cost: O(1) per
// event; a search for victims goes through the residents, after a failed search at most once per
// kLookAgain and worker.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "services/scheduler/placement/eviction_choice.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

// How often the residents are searched while none of them may be evicted.
inline constexpr absl::Duration kLookAgain = absl::Milliseconds(10);

class LargeKvAdmission {
 public:
  explicit LargeKvAdmission(CoreState* state) : state_(state) {}

  // ---- the account ----
  void Opened(const RequestMachine& request, AttachedWorker* worker, bool with_grant);
  // The decode grant came to an open side, with ids that the side did not know.
  void Visited(const RequestMachine& request, AttachedWorker* worker);
  // The history of an open side has grown. Others are evicted if there are too few blocks now. If
  // none may be, the worker itself drops and recomputes KV until one may.
  void Grew(const RequestMachine& request, AttachedWorker* worker);
  // The decode grant has left.
  void Left(const RequestMachine& request);

  // ---- capacity ----
  // Closes sides so that `waiting` fits on some worker of its pair. `only`: if non-zero, the only
  // eviction candidate. False when that is not possible now.
  bool MakeFor(const RequestMachine& waiting, uint64_t only = 0);

 private:
  struct Victims {
    std::vector<uint64_t> requests;
    int64_t ids = 0;
  };

  std::optional<Victims> VictimsOn(const AttachedWorker& worker, EvictionTerms terms,
                                   uint64_t only) const;
  absl::Duration UntilVisit(const RequestMachine& request,
                            const KvLedger::Reservation& place) const;
  void Evict(const Victims& victims, EvictionNeed need);

  CoreState* const state_;
  // By pair: the recent mean time that the decode grant stays away from the large side.
  mutable absl::flat_hash_map<int, absl::Duration> mean_away_;
};

}  // namespace tokenrouter
