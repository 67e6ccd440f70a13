// LargeKvAdmission keeps the account of who has a place in the KV of the large workers
// (kv_ledger.h), and makes room there by closing sides without the decode grant
// (eviction_choice.h). Ownership: the state must outlive it. Threads: lives on the scheduler's
// loop. Cost: O(1) per event; looking for victims goes through the residents, at most once per
// kLookAgain and worker without success.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "services/scheduler/placement/eviction_choice.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

// How often the residents are looked through while nobody may go.
inline constexpr absl::Duration kLookAgain = absl::Milliseconds(10);

class LargeKvAdmission {
 public:
  explicit LargeKvAdmission(CoreState* state) : state_(state) {}

  // ---- the account ----
  void Opened(const RequestMachine& request, AttachedWorker* worker, bool with_grant);
  // The decode grant came to an open side, with ids that it had not seen.
  void Visited(const RequestMachine& request, AttachedWorker* worker);
  // The history of an open side has grown; others give way if there are too few blocks now. If
  // nobody can, the worker itself drops and rebuilds KV until somebody can.
  void Grew(const RequestMachine& request, AttachedWorker* worker);
  // The decode grant has left.
  void Left(const RequestMachine& request);

  // ---- room ----
  // Closes sides so that `waiting` fits on some worker of its pair; `only`: this one or nobody (0:
  // anybody). False when that cannot be had now.
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
  // Of each pair: how long the decode grant stays away from the large side, in the mean of the last
  // times.
  mutable absl::flat_hash_map<int, absl::Duration> mean_away_;
};

}  // namespace tokenrouter
