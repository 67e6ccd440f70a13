// SchedulerCore is the scheduler without threads, sockets and clocks: frames and the time go in,
// frames come out. The server and the simulator run this very class.
// The caller numbers streams; a stream begins with its first frame, which must carry a hello. The
// output of one batch of inputs is gathered; Flush sends it, one frame per peer.
// Ownership: owns all requests. Output must outlive it.
// Threads: not thread-safe; one loop calls everything. Time never goes back.
// Errors: the stream of a peer that breaks the protocol is closed with the reason; a message that
// is not accepted is dropped and counted.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/packages.h"
#include "services/scheduler/core/gateway_sessions.h"
#include "services/scheduler/core/grant_watch.h"
#include "services/scheduler/core/mode_rule.h"
#include "services/scheduler/core/row_report_handler.h"
#include "services/scheduler/core/worker_sessions.h"
#include "services/scheduler/dispatch/device_leases.h"
#include "services/scheduler/dispatch/releaser.h"
#include "services/scheduler/dispatch/worker_hints.h"
#include "services/scheduler/placement/placement.h"
#include "services/scheduler/placement/request_finisher.h"
#include "services/scheduler/placement/worker_loss.h"
#include "services/scheduler/state/core_state.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

class SchedulerCore {
 public:
  struct Parts {
    InitialGrantRule opening;
    // Called for each request that ends, while it still exists; may be empty.
    std::function<void(const RequestMachine&, absl::Time now)> on_end;
    Output* output = nullptr;
  };
  // `term`: unix milliseconds at the start of this process; raised when a peer has seen a higher
  // one.
  SchedulerCore(CoreOptions options, uint64_t term, Parts parts);
  SchedulerCore(const SchedulerCore&) = delete;
  SchedulerCore& operator=(const SchedulerCore&) = delete;

  void OnGatewayFrame(StreamId stream, const wire::GatewayFrame& frame, absl::Time now);
  void OnWorkerFrame(StreamId stream, const wire::WorkerFrame& frame, absl::Time now);
  void OnGatewayGone(StreamId stream, absl::Time now);
  // It may attach again within reattach_grace; what it held is judged at the next Flush or OnTick
  // after that, together with that of other lost workers.
  void OnWorkerGone(StreamId stream, absl::Time now);
  // Restarts all liveness timers after a stall of the caller, during which it may have received
  // nothing. Call it ahead of OnTick.
  void ResetLiveness(absl::Time now);
  // Watchdog, waits, deadlines, leases. Call it every 10 ms or so while there is work.
  void OnTick(absl::Time now);
  // Releases rows, grants leases and sends what the inputs since the last call produced.
  void Flush(absl::Time now);
  // When Flush should be called again even without new input, because a wait ends then. Never
  // earlier than the last Flush; the infinite future when ticks are enough.
  absl::Time NextDeadline() const { return release_.NextDeadline(); }

  // Inputs of the plans that should be made now; the results come back through AdoptPlan. Making a
  // plan takes tens of milliseconds, so it must not run on the thread that calls the rest.
  std::vector<PlanInputs> WantedPlans(absl::Time now);
  void AdoptPlan(int pair, const std::optional<PairPlan>& plan, absl::Duration cost,
                 absl::Time now);
  const PairModel& ModelOf(int pair) const { return state_.ModelOf(pair); }

  // From now on every pair is served in this mode; without a value its model decides.
  void ForceMode(std::optional<ServiceMode> mode) { state_.forced_mode = mode; }

  // The worker gets no new requests. NOT_FOUND for an unknown worker.
  absl::Status DrainWorker(const std::string& worker_id) { return workers_.Drain(worker_id); }

  uint64_t term() const { return state_.term; }
  const SchedulerCounters& counters() const { return state_.counters; }
  const RequestRegistry& requests() const { return state_.requests; }
  const WorkerDirectory& directory() const { return state_.directory; }
  int gateways() const { return gateways_.size(); }
  void FillState(absl::Time now, wire::GetStateReply* reply) const;
  size_t timers() const { return state_.timers.size(); }  // Armed: few per live request.
  // Requests that wait for a KV reservation on a large worker.
  size_t large_waiting() const { return placement_.large_waiting(); }
  // The age of the oldest decode grant that waits for a large worker or for its release.
  absl::Duration OldestLargeWait(absl::Time now) const;

 private:
  // FAILED_PRECONDITION for a term that no peer can have heard.
  absl::Status HearTerm(uint64_t heard);
  // A peer has seen a later term than this one: begins a later term and makes all peers start over.
  void RaiseTerm(uint64_t heard);
  void CloseDeadWorkers();
  void RunTimers();

  CoreState state_;
  RequestFinisher finisher_;
  Placement placement_;
  WorkerLoss loss_;
  ModeRule mode_;
  RowReportHandler rows_;
  GrantWatch grants_;
  Releaser release_;
  DeviceLeases leases_;
  StepTracker steps_;
  WorkerHints notices_;
  GatewaySessions gateways_;
  WorkerSessions workers_;
};

}  // namespace tokenrouter
