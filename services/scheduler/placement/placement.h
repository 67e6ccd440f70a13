// Placement brings the decode grant to a worker: extends an open side, opens one on the best
// worker, or lets the request wait, under the pair's policy for an empty large pool. New requests
// wait by age, turns for a place on a large worker by how long they have waited; nobody overtakes
// there, and room is made by closing sides without the decode grant (large_kv_admission.h). Large
// sides are opened and fed ahead of their turns as large_prefill says. Threads: lives on the
// scheduler's loop. A machine that is passed in may have ended (and be gone) when Forward returns.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/btree_set.h"
#include "services/scheduler/placement/large_kv_admission.h"
#include "services/scheduler/placement/request_finisher.h"
#include "services/scheduler/request/wait_line.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

// Ids that a large side has not seen before they are forwarded between its turns: a frame and a
// step of their own must be worth it.
inline constexpr Position kCatchUpChunk = 64;

class Placement {
 public:
  // Both must outlive this object.
  Placement(CoreState* state, RequestFinisher* finisher)
      : state_(state), finisher_(finisher), large_kv_(state) {}

  // The decode grant of this request moves to its side's worker, wherever that is.
  void DispatchGrant(RequestMachine* request);
  // Seats or workers appeared in this pair.
  void RetryWaiting(int pair);
  // The last worker of a role is gone: what waits for it is judged again.
  void JudgeWaiting(int pair, Role role);
  // Opens the side again on the worker that it is open on: the two disagree about the history.
  void Reopen(RequestMachine* request, Role role);
  // Gives places on large workers to turns that wait for one, and makes room for them.
  void AdmitToLargeKv(int pair);
  // The same for every pair: time alone may have made room. At each tick.
  void AdmitToLargeKvAnywhere();
  // The same for the pairs of requests that have ended since the last call.
  void AdmitAfterEnds();
  // A row of this side was accepted, and the decode grant stays.
  void OnTokensAccepted(RequestMachine* request, AttachedWorker* worker);
  // The wait of this request may be over.
  void WaitTimer(RequestMachine* request);
  // Forgets a request that ends.
  void Ended(RequestMachine* request);
  // Forgets all.
  void Clear();

  // Whether a worker of this role can take one more sequence now.
  bool HasCapacity(int pair, Role role) const;
  // Turns that wait for a place on a large worker.
  size_t large_waiting() const;
  // Whether a request waits for a seat on a large worker.
  bool LargeSlotWanted(int pair) const {
    const auto pool = waiting_.find({pair, Role::kLarge});
    return pool != waiting_.end() && !pool->second.empty();
  }
  // New requests that wait for their first worker.
  int newcomers() const { return newcomers_; }

 private:
  using Pool = std::pair<int, Role>;

  // ---- placing ----
  void Extend(RequestMachine* request);
  bool TryOpen(RequestMachine* request);
  AttachedWorker* Choose(const RequestMachine& request, Role role) const;
  void PlaceOn(RequestMachine* request, AttachedWorker* worker);
  void OpenOn(RequestMachine* request, Role role, AttachedWorker* worker);
  void OnGranted(RequestMachine* request, AttachedWorker* worker);
  void OpenInBackground(RequestMachine* request);
  bool PrefillsInBackground(const AttachedWorker& large) const;

  // ---- waiting (placement_waiting.cc) ----
  void Wait(RequestMachine* request);
  absl::Time WaitEnd(const RequestMachine& request) const;
  // It waits no more.
  void Forget(RequestMachine* request);
  bool OthersWait(const RequestMachine& request) const;
  // Null when nobody waits there.
  WaitLine* LineOf(int pair, Role role);
  bool PoolEmpty(int pair, Role role) const;
  // A large worker has yet to confirm that it closed this very request.
  bool StillCloses(const RequestMachine& request) const;
  // Its large side has become idle.
  void LeaveLarge(RequestMachine* request);

  CoreState* const state_;
  RequestFinisher* const finisher_;
  LargeKvAdmission large_kv_;
  // Small: by age, smaller numbers are older. Large: by the time since which they wait.
  std::map<Pool, WaitLine> waiting_;
  std::map<int, absl::Time> look_again_;  // By pair: nobody may give way before.
  absl::btree_set<int> ended_in_;         // Pairs of AdmitAfterEnds.
  int newcomers_ = 0;
};

}  // namespace tokenrouter
