// PlanRunner makes plans on its own thread at low priority: serving tokens never waits for a plan,
// and models on the same processors run first.
// Ownership: owns its thread; the destructor finishes the plan in progress and drops the others.
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
    std::optional<PairPlan> plan;  // No value: it could not be made.
    absl::Duration cost;           // Processor time of the thread.
  };

  PlanRunner();

  void Start(const PlanInputs& inputs);
  // The plans that were finished since the last call.
  std::vector<Done> TakeDone();

 private:
  static Done Make(const PlanInputs& inputs);
  void Finish(Done done);

  Mutex mutex_;
  std::vector<Done> done_ ABSL_GUARDED_BY(mutex_);
  bool priority_lowered_ = false;  // Whether the thread of loop_ has its priority lowered.
  OwnerLoop loop_;  // The last member, so that it stops before what it writes to is destroyed.
};

}  // namespace tokenrouter
