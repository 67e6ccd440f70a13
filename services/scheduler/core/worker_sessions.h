// WorkerSessions is the workers' side of the core: hello, steps, heartbeats, and what becomes of
// requests whose worker is gone.
// Threads: lives on the scheduler's loop.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "services/scheduler/core/row_flow.h"
#include "services/scheduler/dispatch/device_turns.h"
#include "services/scheduler/dispatch/step_tracker.h"
#include "services/scheduler/placement/placement.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

class WorkerSessions {
 public:
  // All must outlive this object.
  WorkerSessions(CoreState* state, Conclusion* conclusion, Placement* placement, RowFlow* rows,
                 DeviceTurns* turns, StepTracker* steps)
      : state_(state),
        conclusion_(conclusion),
        placement_(placement),
        rows_(rows),
        turns_(turns),
        steps_(steps) {}

  bool Known(StreamId stream) const { return state_->directory.Find(stream) != nullptr; }
  // The pair that changed, or nothing when the worker was refused.
  std::optional<int> OnHello(StreamId stream, const v1::WorkerHello& hello);
  void OnFrame(StreamId stream, const v1::WorkerFrame& frame);
  // The pair that changed, or nothing when the stream was not attached.
  std::optional<int> OnGone(StreamId stream);
  // Streams that the watchdog gives up, in ascending order.
  std::vector<std::pair<StreamId, absl::Status>> Dead() const;
  // No new requests for this worker; it is told.
  absl::Status Drain(const std::string& worker_id);
  // Ends all streams.
  void CloseAll(const absl::Status& why);

 private:
  void Learn(const v1::WorkerHello& hello, int pair);
  void PlaceModel(int pair);
  void Observe(AttachedWorker* worker, const v1::WorkerFrame& frame);
  void ClosePeers(StreamId newcomer, const Pair& pair);
  void FillAttached(StreamId stream, const Pair& pair);
  void SideLost(RequestMachine* request, Role role);

  CoreState* const state_;
  Conclusion* const conclusion_;
  Placement* const placement_;
  RowFlow* const rows_;
  DeviceTurns* const turns_;
  StepTracker* const steps_;
};

}  // namespace tokenrouter
