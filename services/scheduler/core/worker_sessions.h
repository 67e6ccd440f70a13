// WorkerSessions is the workers' side of the core: hello, steps, heartbeats, and their end.
// Threads: lives on the scheduler's loop.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "services/scheduler/core/row_report_handler.h"
#include "services/scheduler/dispatch/device_leases.h"
#include "services/scheduler/dispatch/step_tracker.h"
#include "services/scheduler/placement/placement.h"
#include "services/scheduler/placement/worker_loss.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

class WorkerSessions {
 public:
  // All must outlive this object.
  WorkerSessions(CoreState* state, Placement* placement, WorkerLoss* loss, RowReportHandler* rows,
                 DeviceLeases* leases, StepTracker* steps)
      : state_(state),
        placement_(placement),
        loss_(loss),
        rows_(rows),
        leases_(leases),
        steps_(steps) {}

  bool Known(StreamId stream) const { return state_->directory.Find(stream) != nullptr; }
  // The pair that changed; no value when the worker was refused.
  std::optional<int> OnHello(StreamId stream, const wire::WorkerHello& hello);
  void OnFrame(StreamId stream, const wire::WorkerFrame& frame);
  // It may attach again within `grace`. What it held is judged after it, with that of all others
  // that go before the next WorkerLoss::Judge. The pair that changed, no value when the stream was
  // not attached.
  std::optional<int> OnGone(StreamId stream, absl::Duration grace);
  // Streams that the watchdog declares dead, in ascending order, with the reason.
  std::vector<std::pair<StreamId, absl::Status>> Dead() const;
  // The worker gets no new requests and is sent the drain. NOT_FOUND for an unknown worker.
  absl::Status Drain(const std::string& worker_id);
  // Ends all streams.
  void CloseAll(const absl::Status& why);

 private:
  void Learn(const wire::WorkerHello& hello, int pair);
  void UpdateTopology(int pair);
  void Observe(AttachedWorker* worker, const wire::WorkerFrame& frame);
  void ClosePeers(StreamId newcomer, const Pair& pair);
  void FillAttached(StreamId stream, const Pair& pair);

  CoreState* const state_;
  Placement* const placement_;
  WorkerLoss* const loss_;
  RowReportHandler* const rows_;
  DeviceLeases* const leases_;
  StepTracker* const steps_;
};

}  // namespace tokenrouter
