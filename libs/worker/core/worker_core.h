// WorkerCore is a worker without its threads and its stream: a deterministic state machine that
// takes CommandFrames and gives WorkerFrames. A step is three calls, so that a simulator can put
// time between them:
//   Plan       what runs next; nothing when no row is ready or the device is leased to another
//   Execute    the engine call, blocking
//   Complete   what became of the rows; one frame for the scheduler
// Frames that arrive during a step take effect in Complete. Its parts: command_applier.h does what
// frames say, step_builder.h chooses the rows, row_deferral.h lets them wait, step_reporter.h says
// what became of them, all on the sequences of sequence_store.h.
// Ownership: the engine must outlive it and is used by no one else. Threads: not thread-safe; one
// owner thread calls everything. Times come in as arguments, of one clock.
// Errors: none are returned to the caller. What the scheduler asks and cannot have (a bad
// specification, an engine that fails) ends that request with FINISH_REASON_ERROR and a detail.
// When a step of several rows fails, its rows run again alone, so that one bad row does not end
// others. Protocol: a frame of another term is dropped and counted. Extend beyond what is known
// here, or of an unknown request, is answered by NeedIds{have}; have is 0 for an unknown request,
// which only an Open can bring back. On a small worker with a dedicated device rows may wait for a
// fuller batch (local_deferral.h): Plan finds nothing until then and NextDeadline says when. A
// Close of an unknown request is confirmed like any other.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"
#include "libs/inference/engine.h"
#include "libs/tokens/protocol_version.h"
#include "libs/worker/core/command_applier.h"
#include "libs/worker/core/row_deferral.h"
#include "libs/worker/core/sequence_store.h"
#include "libs/worker/core/step_builder.h"
#include "libs/worker/core/step_reporter.h"
#include "libs/worker/core/worker_core_options.h"
#include "libs/worker/step/device_lease.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

class WorkerCore {
 public:
  WorkerCore(WorkerCoreOptions options, Engine* engine);
  // The parts point at each other.
  WorkerCore(const WorkerCore&) = delete;
  WorkerCore& operator=(const WorkerCore&) = delete;

  // ---- the stream ----
  // The first frame of a stream.
  wire::WorkerFrame Hello() const;
  // Takes effect at once, or in Complete while a step runs. `arrived`: when the frame reached this
  // process, at most now; absent: now.
  void Apply(const wire::CommandFrame& frame, absl::Time now,
             std::optional<absl::Time> arrived = std::nullopt);
  // The stream is gone: grants end, ids and KV stay for the next one.
  void Detach();
  // What is to be sent outside of a step; nothing when there is nothing to send or a step runs.
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
  const SequenceStore& store() const { return store_; }
  const WorkerCoreOptions& options() const { return options_; }

 private:
  struct Arrived {
    wire::CommandFrame frame;
    absl::Time at;
  };
  void ApplyNow(const wire::CommandFrame& frame, absl::Time now, absl::Time arrived);
  void ApplyAttached(const wire::CommandFrame& frame, absl::Time now);
  void FreeUnclaimed(absl::Time now);
  void FillStepReport(const PlannedStep& step, absl::Time now, wire::StepReport* report) const;
  void MovePendingTo(wire::WorkerFrame* frame, absl::Time now);
  void WatchLeaseWait(absl::Time now);

  const WorkerCoreOptions options_;
  Engine* const engine_;
  SequenceLimits limits_;
  WorkerCounters counters_;
  wire::WorkerFrame pending_;  // Sent at the next chance.
  DeviceLease lease_;
  SequenceStore store_;
  CommandApplier commands_;
  StepBuilder builder_;
  StepReporter reporter_;
  std::optional<RowDeferral> deferral_;  // Small side on a dedicated device.

  bool attached_ = false;
  bool background_prefill_ = false;
  bool draining_ = false;  // The scheduler said so.
  bool leaving_ = false;   // This worker says so; said_leaving_: on this stream already.
  bool said_leaving_ = false;
  uint64_t term_ = 0;  // 0: never attached.
  absl::Time free_unclaimed_at_ = absl::InfiniteFuture();
  bool step_runs_ = false;
  std::deque<Arrived> arrived_;  // During a step; bounded by the stream's own queue.
  absl::Time lease_wanted_since_ = absl::InfiniteFuture();
};

}  // namespace tokenrouter
