// StepTracker maintains AttachedWorker::step, the scheduler's estimate of what each worker runs,
// and learns the handoff latency from it.
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
  void LearnHandoffLatency(const AttachedWorker& worker, const wire::StepReport& report);
  // Fills in the step's ids and predicted time. REQUIRES: step->rows is set.
  void Predict(const AttachedWorker& worker, RunningStep* step) const;

  CoreState* const state_;
};

}  // namespace tokenrouter
