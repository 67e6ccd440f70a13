// Placement assigns a request's decode grant to a worker: it extends an open side, opens one on the
// best worker, or lets the request wait, under the pair's policy for an empty large pool. New
// requests wait by age; requests for a KV reservation on a large worker wait by how long they have
// waited. No request overtakes there, and capacity is made by evicting sides without the decode
// grant (large_kv_admission.h). Large sides are opened and fed in the background as large_prefill
// says.
// Threads: lives on the scheduler's loop. A machine that is passed in may have ended (and been
// destroyed) when a method returns.
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

// The fewest ids unknown to a large side that are forwarded between its decode grants: they must be
// worth a frame and a step.
inline constexpr Position kCatchUpChunk = 64;

class Placement {
 public:
  // Both must outlive this object.
  Placement(CoreState* state, RequestFinisher* finisher)
      : state_(state), finisher_(finisher), large_kv_(state) {}

  // Assigns the decode grant of this request to the worker of its side, or lets the request wait.
  void DispatchGrant(RequestMachine* request);
  // Slots or workers have become available in this pair.
  void RetryWaiting(int pair);
  // The last worker of a role is gone: the requests that wait for it are judged again.
  void JudgeWaiting(int pair, Role role);
  // Opens the side again on its present worker, because the two disagree about the history.
  void Reopen(RequestMachine* request, Role role);
  // Opens a lost side on the worker that still holds its ids, whether it has the grant or not; a
  // suspect may have to wait for that.
  void ReopenOn(RequestMachine* request, AttachedWorker* worker);
  // Gives KV reservations on large workers to requests that wait for one, and evicts for them, in
  // every pair, because evictions may become eligible as time passes. At each tick.
  void AdmitToLargeKvAnywhere();
  // The same for the pairs of requests that have ended since the last call, and the next suspects
  // where one has made room.
  void AdmitAfterEnds();
  // A row of this side was accepted, and the decode grant stays.
  void OnTokensAccepted(RequestMachine* request, AttachedWorker* worker);
  // The wait of this request may be over.
  void WaitTimer(RequestMachine* request);
  // Forgets a request that ends.
  void Ended(RequestMachine* request);
  // Forgets all requests.
  void Clear();

  // Whether a worker of this role can take one more sequence now.
  bool HasCapacity(int pair, Role role) const;
  // Requests that wait for a KV reservation on a large worker.
  size_t large_waiting() const;
  // Whether a request waits for a slot on a large worker.
  bool LargeSlotWanted(int pair) const {
    const auto pool = waiting_.find({pair, Role::kLarge});
    return pool != waiting_.end() && !pool->second.empty();
  }

 private:
  using Pool = std::pair<int, Role>;

  // ---- suspects (suspects.cc) ----
  // It runs without other suspects, unless it has waited for that for too long.
  bool IsolationHolds(const RequestMachine& request, Role role) const;
  // Wherever it could run, another suspect does.
  bool MustWaitAlone(const RequestMachine& request) const;
  void AdmitSuspects(int pair);

  // ---- placing ----
  // As AdmitToLargeKvAnywhere, for one pair.
  void AdmitToLargeKv(int pair);
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
  // Until the loss of its worker is judged.
  void AwaitJudgement(RequestMachine* request);
  absl::Time WaitEnd(const RequestMachine& request) const;
  // The request waits no more.
  void Forget(RequestMachine* request);
  // It gives up its place in line, and waits on.
  void LeaveLines(RequestMachine* request);
  bool OthersWait(const RequestMachine& request) const;
  // Null when no request waits there.
  WaitLine* LineOf(int pair, Role role);
  bool PoolEmpty(int pair, Role role) const;
  // The large pool is empty, that is known, and the policy is not to wait for it.
  bool LargePoolGivenUp(int pair) const;
  // Whether a large worker has yet to confirm that it closed this very request.
  bool StillCloses(const RequestMachine& request) const;
  // The decode grant leaves its large side, which becomes idle.
  void LeaveLarge(RequestMachine* request);

  CoreState* const state_;
  RequestFinisher* const finisher_;
  LargeKvAdmission large_kv_;
  // Small side: by age, smaller numbers are older. Large side: by the time since which they wait.
  std::map<Pool, WaitLine> waiting_;
  std::map<Pool, WaitLine> suspects_;     // By age: those that must wait alone.
  std::map<int, absl::Time> look_again_;  // By pair: no resident may be evicted before this time.
  absl::btree_set<int> ended_in_;         // Pairs of AdmitAfterEnds.
};

}  // namespace tokenrouter
