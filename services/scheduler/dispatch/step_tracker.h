// StepTracker keeps AttachedWorker::step, what runs where as far as the scheduler can know, and
// learns from it how long the way to a worker and back takes.
// Threads: lives on the scheduler's loop. Cost: O(1) per frame of a worker.
#pragma once

#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

class StepTracker {
 public:
  // `state` must outlive this object.
  explicit StepTracker(CoreState* state) : state_(state) {}

  // The worker reports that a step has ended.
  void Ended(AttachedWorker* worker, const wire::StepReport& report);
  void Gone(const AttachedWorker& worker);
  // Workers that run nothing and have ready rows begin a step.
  void StartDue();

 private:
  void LearnHop(const AttachedWorker& worker, const wire::StepReport& report);
  // Its ids and its time. REQUIRES: step->rows is set.
  void Predict(const AttachedWorker& worker, RunningStep* step) const;

  CoreState* const state_;
};

}  // namespace tokenrouter
