// StepReporter turns what a step brought into the rows of the frame for the scheduler: it runs the
// three functions of each row's algorithm (row_outcome.h) and keeps the KV in line with them. A
// failed step of several rows runs again one row at a time, so that one bad row does not end
// others. Ownership: everything that is passed in must outlive it. Threads: not thread-safe; lives
// on the engine's owner loop. Errors: a row that fails alone ends its request with
// FINISH_REASON_ERROR.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "libs/worker/core/sequence_store.h"
#include "libs/worker/core/step_builder.h"
#include "libs/worker/core/worker_core_options.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

class StepReporter {
 public:
  StepReporter(Role role, const SequenceLimits* limits, SequenceStore* store,
               WorkerCounters* counters)
      : role_(role), limits_(limits), store_(store), counters_(counters) {}

  // Adds the rows of a step that ran; returns how many of them handed off.
  int32_t Report(const PlannedStep& step, absl::Time now, wire::WorkerFrame* frame);
  // After a step that failed.
  void Recover(const PlannedStep& step, wire::WorkerFrame* frame);
  // After each step.
  void CountStep();
  // Whether the next step must be of one row, to find the one that fails a batch.
  bool alone() const { return steps_alone_ > 0; }

 private:
  bool FreeBlocks(const PlannedStep& step);

  const Role role_;
  const SequenceLimits* const limits_;
  SequenceStore* const store_;
  WorkerCounters* const counters_;
  int64_t steps_alone_ = 0;
};

}  // namespace tokenrouter
