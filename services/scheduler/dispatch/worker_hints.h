// WorkerHints sends small workers on dedicated devices the rule by which they wait (Deferral) and,
// while rows may wait under it, the running large steps (PeerStep).
// Threads: lives on the scheduler's loop. Cost: none per frame under policies that never wait.
#pragma once

#include <vector>

#include "services/scheduler/dispatch/deferral_rule.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

class WorkerHints {
 public:
  // `state` must outlive this object.
  explicit WorkerHints(CoreState* state) : state_(state) {}

  // Sends the rule to every small worker whose rule has changed. For ticks, and when a worker
  // attaches.
  void SendDeferral();
  // Sends the large steps that began or ended since the last call.
  void SendPeerSteps();

 private:
  void SendDeferralTo(AttachedWorker* small, const wire::Deferral& rule);
  void SendPeerStep(AttachedWorker* small);
  int32_t RowsFrom(const AttachedWorker& large, StreamId small) const;

  CoreState* const state_;
  std::vector<LargeStep> steps_;  // Reused.
};

}  // namespace tokenrouter
