// Placement brings the pen to a worker: extends an open side, opens one on the best worker, or lets
// the request wait, under the pair's policy for an empty large pool. It makes room on full large
// workers by closing sides that do not hold the pen.
// Threads: lives on the scheduler's loop. A machine that is passed in may have ended (and be gone)
// when Forward returns.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "absl/container/btree_set.h"
#include "services/scheduler/conclusion.h"
#include "services/scheduler/core_state.h"

namespace tokenrouter {

class Placement {
 public:
  // Both must outlive this object.
  Placement(CoreState* state, Conclusion* conclusion) : state_(state), conclusion_(conclusion) {}

  // The pen of this request moves to its side's worker, wherever that is.
  void Forward(RequestMachine* request);
  // Seats or workers appeared in this pair.
  void RetryWaiting(int pair);
  // The last worker of a role is gone: what waits for it is judged again.
  void JudgeWaiting(int pair, Role role);
  // Opens the side again on the worker that it is open on: the two disagree about the history.
  void Reopen(RequestMachine* request, Role role);
  // Closes idle large sides of this pair while more requests wait than seats are being freed.
  void MakeRoom(int pair);
  // The wait of this request may be over.
  void WaitTimer(RequestMachine* request);
  // Forgets a request that ends.
  void Forget(RequestMachine* request);
  // Forgets all.
  void Clear();

  // Whether a worker of this role can take one more sequence now.
  bool AnyRoom(int pair, Role role) const;
  // New requests that wait for their first worker.
  int newcomers() const { return newcomers_; }

 private:
  using Pool = std::pair<int, Role>;

  void Extend(RequestMachine* request);
  bool TryOpen(RequestMachine* request);
  void OpenOn(RequestMachine* request, Role role, AttachedWorker* worker);
  void TurnGiven(RequestMachine* request, AttachedWorker* worker, int64_t unseen_ids);
  void Wait(RequestMachine* request);
  absl::Time WaitEnd(const RequestMachine& request) const;
  bool PoolEmpty(int pair, Role role) const;
  bool EvictOne(int pair);

  CoreState* const state_;
  Conclusion* const conclusion_;
  std::map<Pool, absl::btree_set<uint64_t>> waiting_;  // By age: smaller numbers are older.
  int newcomers_ = 0;
};

}  // namespace tokenrouter
