// RowDeferral lets the ready rows of a small worker with a dedicated device wait for a fuller
// batch: it says to the rule (local_deferral.h) what could run and what the requests allow.
// Ownership: store and counters must outlive it. Threads: not thread-safe; lives on the engine's
// owner loop. Cost: O(sequences) per frame and per plan.
#pragma once

#include "absl/time/time.h"
#include "libs/worker/core/sequence_store.h"
#include "libs/worker/core/step_builder.h"
#include "libs/worker/core/worker_core_options.h"
#include "libs/worker/step/local_deferral.h"

namespace tokenrouter {

class RowDeferral {
 public:
  RowDeferral(const WorkerCoreOptions& options, SequenceStore* store, WorkerCounters* counters);

  // What a frame says of the other side. The rows that its other commands made ready are stamped
  // first: they came back from a step before the one that it may tell about.
  void OnFrame(const wire::CommandFrame& frame, absl::Time now, absl::Time arrived);
  // A step that ran.
  void Observe(const PlannedStep& step, absl::Duration elapsed);
  // The stream is gone.
  void Detach();

  // Whether the rows of the plan wait for more. `alone`: a step of one row looks for a fault.
  bool Defers(const StepPlan& plan, bool alone, absl::Time now);
  // When to plan again while ready rows wait; InfiniteFuture: none waits.
  absl::Time deferred_until() const { return deferred_until_; }

 private:
  absl::Time LaunchBy(const SequenceState& sequence, absl::Duration round_trip) const;
  void StampReadyRows(absl::Time now);

  const Role role_;
  SequenceStore* const store_;
  WorkerCounters* const counters_;
  LocalDeferral rule_;
  absl::Time deferred_until_ = absl::InfiniteFuture();
};

}  // namespace tokenrouter
