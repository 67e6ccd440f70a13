// SchedulerCore is the scheduler without threads, sockets and clocks: frames and the time go in,
// frames come out. The server and the simulator run this very class.
// Streams are numbered by the caller and begin with their first frame, which must carry a hello.
// What one batch of inputs produces is gathered; Flush sends it, one frame per peer.
// Ownership: owns all requests. Output must outlive it.
// Threads: not thread-safe; one loop calls everything. Time never goes back.
// Errors: a peer that breaks the protocol has its stream closed with the reason; a message that
// does not count is dropped and counted.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/packages.h"
#include "services/scheduler/core/gateway_sessions.h"
#include "services/scheduler/core/mode_rule.h"
#include "services/scheduler/core/row_report_handler.h"
#include "services/scheduler/core/worker_sessions.h"
#include "services/scheduler/dispatch/device_leases.h"
#include "services/scheduler/dispatch/releaser.h"
#include "services/scheduler/dispatch/worker_hints.h"
#include "services/scheduler/placement/placement.h"
#include "services/scheduler/placement/request_finisher.h"
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
  // `term`: unix milliseconds at the start of this process; raised when a peer has heard a higher
  // one.
  SchedulerCore(CoreOptions options, uint64_t term, Parts parts);
  SchedulerCore(const SchedulerCore&) = delete;
  SchedulerCore& operator=(const SchedulerCore&) = delete;

  void OnGatewayFrame(StreamId stream, const wire::GatewayFrame& frame, absl::Time now);
  void OnWorkerFrame(StreamId stream, const wire::WorkerFrame& frame, absl::Time now);
  void OnGatewayGone(StreamId stream, absl::Time now);
  void OnWorkerGone(StreamId stream, absl::Time now);
  // The caller stood still until now and may not have heard what was said meanwhile: nobody's
  // silence counts from before. Call it ahead of OnTick.
  void ResetLiveness(absl::Time now);
  // Watchdog, waits, deadlines, leases. Call it every 10 ms or so while there is work.
  void OnTick(absl::Time now);
  // Releases, grants and sends what the inputs since the last call produced.
  void Flush(absl::Time now);
  // When Flush should be called again though nothing came in: a wait ends then. Never earlier than
  // the last Flush; the infinite future when ticks are enough.
  absl::Time NextDeadline() const { return release_.NextDeadline(); }

  // Plans that should be made now, to be given back through AdoptPlan. Making one takes tens of
  // milliseconds: not on the thread that calls the rest.
  std::vector<PlanInputs> WantedPlans(absl::Time now);
  void AdoptPlan(int pair, const std::optional<PairPlan>& plan, absl::Duration cost,
                 absl::Time now);
  const PairModel& ModelOf(int pair) const { return state_.ModelOf(pair); }

  // From now on every pair is served so; nothing: as its model says.
  void ForceMode(std::optional<ServiceMode> mode) { state_.forced_mode = mode; }

  // Refuses new requests from now on; those in flight go on.
  void BeginDrain() { state_.draining = true; }
  // The worker gets no new requests. NOT_FOUND for an unknown one.
  absl::Status DrainWorker(const std::string& worker_id) { return workers_.Drain(worker_id); }

  uint64_t term() const { return state_.term; }
  const SchedulerCounters& counters() const { return state_.counters; }
  const RequestRegistry& requests() const { return state_.requests; }
  const WorkerDirectory& directory() const { return state_.directory; }
  int gateways() const { return gateways_.size(); }
  void FillState(absl::Time now, wire::GetStateReply* reply) const;
  // Turns that wait for a place on a large worker.
  size_t large_waiting() const { return placement_.large_waiting(); }
  // Age of the oldest turn that waits for a large worker or for its release.
  absl::Duration OldestLargeWait(absl::Time now) const;

 private:
  // A peer lived under a later term than ours: begin a later one, everybody starts over.
  void RaiseTerm(uint64_t heard);
  void CloseDeadWorkers();
  void RunTimers();

  CoreState state_;
  RequestFinisher finisher_;
  Placement placement_;
  ModeRule mode_;
  RowReportHandler rows_;
  Releaser release_;
  DeviceLeases leases_;
  StepTracker steps_;
  WorkerHints notices_;
  GatewaySessions gateways_;
  WorkerSessions workers_;
};

}  // namespace tokenrouter
