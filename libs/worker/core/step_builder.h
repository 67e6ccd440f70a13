// StepBuilder chooses the rows of the next step (batch_planner.h) within the blocks that there are,
// and makes the engine's batch of them. Where blocks are short it preempts, so that the oldest
// request gets on.
// Ownership: everything that is passed in must outlive it. Threads: not thread-safe; lives on the
// engine's owner loop. Cost: O(sequences) per plan, and O(ids) only of rows that start.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "libs/inference/engine.h"
#include "libs/worker/core/prefix_starter.h"
#include "libs/worker/core/sequence_store.h"
#include "libs/worker/core/worker_core_options.h"
#include "libs/worker/step/batch_planner.h"
#include "libs/worker/step/device_lease.h"

namespace tokenrouter {

// Valid until WorkerCore::Complete: the batch points into the core's sequences.
struct PlannedStep {
  struct Row {
    SequenceId sequence;
    int32_t choices = 0;
  };
  StepBatch batch;
  std::vector<Row> rows;  // As batch.rows.
  StepResult result;
  absl::Status status;
  absl::Time started;
  absl::Duration predicted;
  bool idle = false;
  int64_t background_ids = 0;  // BatchPlan's.
};

// The rows that could run now, and the sequences that their indices mean.
struct StepPlan {
  std::vector<SequenceState*> sequences;
  BatchPlan batch;
};

class StepBuilder {
 public:
  StepBuilder(const WorkerCoreOptions* options, Engine* engine, const DeviceLease* lease,
              SequenceStore* store, WorkerCounters* counters);

  // Ready sequences whose history fits into no KV of this worker, with why, for people.
  struct TooLarge {
    SequenceState* sequence;
    std::string why;
  };
  std::vector<TooLarge> FindTooLarge() const;

  // What could run now. The number of rows is 1 while `alone`.
  StepPlan Plan(bool background_prefill, bool alone);
  // Lets rows of the plan start from KV that is there; the plan may end up without rows.
  void StartFromPrefixes(StepPlan* plan);
  // REQUIRES: the plan has rows. Evicts cached blocks that the step needs.
  PlannedStep Make(const StepPlan& plan, absl::Time now);

 private:
  StepPlan PlanWithinBlocks();
  void Snapshot(std::vector<SequenceState*>* sequences, std::vector<RowSnapshot>* rows);
  // Of the next step: a chunk of a prompt must outlast neither max_step nor a lease.
  int64_t MostStepTokens() const;
  void FreeBlocksFor(const StepBatch& batch);

  const WorkerCoreOptions* const options_;
  Engine* const engine_;
  const DeviceLease* const lease_;
  SequenceStore* const store_;
  WorkerCounters* const counters_;
  PrefixStarter prefixes_;
  bool background_prefill_ = false;
  bool alone_ = false;
};

}  // namespace tokenrouter
