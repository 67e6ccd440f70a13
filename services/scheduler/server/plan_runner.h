// PlanRunner makes plans on a thread of its own, at low priority: what serves tokens never waits
// for one, and models on the same processors go first.
// Ownership: owns its thread; the destructor finishes the plan in hand and drops the others.
// Threads: thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "libs/concurrency/mutex.h"
#include "libs/concurrency/owner_loop.h"
#include "services/scheduler/pair_model/pair_plan.h"

namespace tokenrouter {

class PlanRunner {
 public:
  struct Done {
    int pair = 0;
    std::optional<PairPlan> plan;  // Nothing: it could not be made.
    absl::Duration cost;           // Of the thread's own processor time.
  };

  PlanRunner();

  void Start(const PlanInputs& inputs);
  // What was finished since the last call.
  std::vector<Done> TakeDone();

 private:
  static Done Make(const PlanInputs& inputs);
  void Finish(Done done);

  Mutex mutex_;
  std::vector<Done> done_ ABSL_GUARDED_BY(mutex_);
  bool priority_lowered_ = false;  // Of the loop: its priority is lowered.
  OwnerLoop loop_;                 // The last member: it stops before what it writes to goes.
};

}  // namespace tokenrouter
