// WorkerCore is a worker without its threads and its stream: a deterministic state machine that
// takes CommandFrames and gives WorkerFrames. A step is three calls, so that a simulator can put
// time between them:
//   Plan       what runs next; nothing when nothing is ready or the device is not ours now
//   Execute    the engine call, blocking
//   Complete   what became of the rows; one frame for the scheduler
// Frames that arrive during a step take effect in Complete.
// Ownership: the engine must outlive it and is used by nobody else. Threads: not thread-safe; one
// owner thread calls everything. Times come in as arguments, of one clock.
// Errors: none are returned to the caller. What the scheduler asks and cannot have (a bad
// specification, an engine that fails) ends that request with FINISH_REASON_ERROR and a detail.
// When a step of several rows fails, its rows run again alone, so that one bad row does not end
// others. Protocol: a frame of another term is dropped and counted. Extend beyond what is known
// here, or of an unknown request, is answered by NeedIds{have}; have is 0 for an unknown request,
// which only an Open can bring back. On a small worker with a device of its own rows may wait for a
// fuller batch (local_deferral.h): Plan finds nothing until then and NextDeadline says when. A
// Close of an unknown request is confirmed like any other.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "libs/inference/engine.h"
#include "libs/tokens/protocol_version.h"
#include "libs/worker/cache/prefix_cache.h"
#include "libs/worker/core/row_outcome.h"
#include "libs/worker/core/sequence_table.h"
#include "libs/worker/step/batch_planner.h"
#include "libs/worker/step/device_lease.h"
#include "libs/worker/step/local_deferral.h"
#include "libs/worker/step/preemption_policy.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

struct WorkerCoreOptions {
  Role role = Role::kSmall;
  std::string worker_id;  // Unique per process start.
  std::string pair;
  std::string tokenizer_fingerprint;  // Empty: not checked.
  std::vector<TokenId> eos_ids;
  std::string device_key;         // Workers that share it take turns; empty: a device of its own.
  int32_t max_sequences = 256;    // Told to the scheduler; twice as many are refused.
  int32_t max_rows = 64;          // Of a step.
  int64_t max_step_tokens = 512;  // New ids of a step; at least kMaxVerify + 1.
  absl::Duration max_step =       // Predicted time of a step: a longer prompt is read in chunks.
      absl::InfiniteDuration();
  int64_t idle_step_tokens = 128;  // Of a step in which nothing is ready and sequences without a
                                   // turn catch up; 0: never. Ignored with a device key.
  bool prefix_cache = true;        // Closed sequences keep their KV for others that start alike.
  std::vector<wire::StepSample> samples;  // Steps measured before; told in every hello.
};

// Of the whole life of the core.
struct WorkerCounters {
  uint64_t steps = 0;
  uint64_t committed = 0;     // Tokens.
  uint64_t catch_up_ids = 0;  // Run without returning a choice.
  uint64_t handoffs = 0;
  uint64_t preemptions = 0;
  uint64_t engine_errors = 0;
  uint64_t need_ids = 0;
  uint64_t stale_frames = 0;
  uint64_t refused = 0;       // Requests ended with an error before they ran.
  WaitCounts deferrals{};     // Steps by why they started, where rows may wait.
  absl::Duration lease_wait;  // Time with something ready and no lease.
};

// Handle with care between Plan and Complete: the batch refers to the core's ids.
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

class WorkerCore {
 public:
  WorkerCore(WorkerCoreOptions options, Engine* engine);

  // ---- the stream ----
  // The first frame of a stream.
  wire::WorkerFrame Hello() const;
  // Takes effect at once, or in Complete while a step runs. `arrived`: when the frame reached this
  // process, at most now.
  void Apply(const wire::CommandFrame& frame, absl::Time now) { Apply(frame, now, now); }
  void Apply(const wire::CommandFrame& frame, absl::Time now, absl::Time arrived);
  // The stream is gone: turns end, ids and KV stay for the next one.
  void Detach();
  // What is to be said outside of a step; nothing when there is nothing to say or a step runs.
  std::optional<wire::WorkerFrame> TakePending(absl::Time now);

  // ---- steps ----
  std::optional<PlannedStep> Plan(absl::Time now);
  // The status is also kept in the step.
  absl::Status Execute(PlannedStep* step);
  wire::WorkerFrame Complete(PlannedStep step, absl::Time now);

  // When to call Plan and TakePending again though nothing arrives; InfiniteFuture: never.
  absl::Time NextDeadline() const;

  // ---- for metrics, heartbeats and tests ----
  bool attached() const { return attached_; }
  // Asks the scheduler for no new requests, from the next frame on.
  void BeginDrain() { leaving_ = true; }
  bool draining() const { return draining_; }  // The scheduler wants this worker to leave.
  uint64_t term() const { return term_; }
  const WorkerCounters& counters() const { return counters_; }
  int32_t Ready() const;
  int32_t Waiting() const;  // Have a turn and cannot run: credit_blocked or not released.
  size_t sequences() const { return table_.size(); }
  // Blocks that no open request holds; cached ones (prefix_cache.h) are among them.
  int64_t free_blocks() const { return cache_.free_blocks(); }
  const PrefixCache& cache() const { return cache_; }
  const WorkerCoreOptions& options() const { return options_; }

 private:
  struct Arrived {
    wire::CommandFrame frame;
    absl::Time at;
  };
  void ApplyNow(const wire::CommandFrame& frame, absl::Time now, absl::Time arrived);
  void ApplyAttached(const wire::CommandFrame& frame, absl::Time now);
  void ApplyOpenFrame(const wire::Open& open);
  void ApplyExtendFrame(const wire::Extend& extend);
  void ApplyCloseFrame(const wire::Close& close);
  void ApplyCredit(const wire::Credit& credit);
  // No turn and no catching up until it is opened again.
  static void End(SequenceState* sequence);
  void Refuse(SequenceState* sequence, const std::string& why);
  bool MakeRoomForSequence();
  void FreeUnclaimed(absl::Time now);
  void Forget(SequenceState* sequence);
  void Settle(const SequenceState& sequence);

  std::vector<SequenceState*> Snapshot(std::vector<RowSnapshot>* rows);
  // Of the next step: a chunk of a prompt must not outlast max_step, nor a turn on a shared device.
  int64_t MostStepTokens() const;
  BatchPlan PlanWithinBlocks(std::vector<SequenceState*>* sequences);
  // Drops somebody's KV for it; false when nobody may be dropped.
  bool Preempt(SequenceState* in_need);
  void RefuseTooLarge();
  // Rows of the plan that start from nothing get what is in KV of their ids, or are held back in
  // this plan while another row of it reads the same ids. True when the plan no longer stands.
  bool StartFromPrefixes(const std::vector<SequenceState*>& sequences, const BatchPlan& plan);
  // What sequences that have started have yet to read, if they can go on.
  void AddReaders(const std::vector<SequenceState*>& sequences, const BatchPlan& plan,
                  PrefixIndex* under_way) const;
  // Evicts cached blocks that the step needs.
  void MakeRoomFor(const StepBatch& batch);
  PlannedStep MakeStep(const std::vector<SequenceState*>& sequences, const BatchPlan& plan,
                       absl::Time now);

  // Whether the rows of the plan wait for more; sets deferred_until_.
  bool Defers(const std::vector<SequenceState*>& sequences, const BatchPlan& plan, absl::Time now);
  absl::Time LaunchBy(const SequenceState& sequence, absl::Duration round_trip) const;
  // Stamps the rows that commands made ready.
  void NoteReady(absl::Time now);

  void ReportRows(PlannedStep* step, wire::WorkerFrame* frame, absl::Time now);
  void HandleFailedStep(const PlannedStep& step, wire::WorkerFrame* frame);
  void MovePendingTo(wire::WorkerFrame* frame, absl::Time now);
  void WatchLeaseWait(absl::Time now);

  const WorkerCoreOptions options_;
  Engine* const engine_;
  PrefixCache cache_;
  absl::flat_hash_set<SequenceId> held_back_;  // In the plan that is being made.
  absl::flat_hash_set<SequenceId> looked_up_;  // For the plan that is being made.
  SequenceLimits limits_;
  SequenceTable table_;
  DeviceLease lease_;
  std::optional<LocalDeferral> deferral_;               // Small side on a device of its own.
  absl::Time deferred_until_ = absl::InfiniteFuture();  // While ready rows wait.

  bool attached_ = false;
  bool read_ahead_ = false;
  bool draining_ = false;  // The scheduler said so.
  bool leaving_ = false;   // We say so; told_leaving_: on this stream already.
  bool told_leaving_ = false;
  uint64_t term_ = 0;  // 0: never attached.
  absl::Time free_unclaimed_at_ = absl::InfiniteFuture();

  bool step_runs_ = false;
  int64_t steps_alone_ = 0;  // So many steps run one row each, to find the one that fails a batch.
  std::deque<Arrived> arrived_;  // During a step; bounded by the stream's own queue.
  wire::WorkerFrame pending_;    // Said at the next chance.
  absl::Time lease_wanted_since_ = absl::InfiniteFuture();
  WorkerCounters counters_;
};

}  // namespace tokenrouter
