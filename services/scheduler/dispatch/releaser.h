// Releaser releases rows that wait for a large worker when DecideRelease says so.
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

  // Decides for every large worker with rows that wait.
  void ReleaseRows();
  // When ReleaseRows should be called again even without new input; infinite: no wait has an end.
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
