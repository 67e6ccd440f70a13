// Releaser lets rows that wait for a large worker go, when DecideRelease says so.
// Threads: lives on the scheduler's loop.
#pragma once

#include <vector>

#include "services/scheduler/dispatch/release_policy.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

class Releaser {
 public:
  // `state` must outlive this object.
  explicit Releaser(CoreState* state) : state_(state) {}

  // Decides about every large worker with rows that wait.
  void ReleaseRows();
  // When ReleaseRows should be called again though nothing came in; infinite: not for this.
  absl::Time NextDeadline() const;

 private:
  void Decide(AttachedWorker* worker);
  ReleaseDecision Judge(const AttachedWorker& worker);
  void Release(AttachedWorker* worker);

  CoreState* const state_;
  // Reused.
  std::vector<ReleaseSnapshot::Row> rows_;
  std::vector<RunningStep> steps_;
};

}  // namespace tokenrouter
