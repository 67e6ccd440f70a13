#include "services/scheduler/dispatch/step_tracker.h"

#include <algorithm>

namespace tokenrouter {

void StepTracker::LearnHandoffLatency(const AttachedWorker& worker,
                                      const wire::StepReport& report) {
  if (report.elapsed_us() <= 0) return;
  absl::Time since = worker.step.since;
  if (worker.hello.device_key().empty()) {
    // A worker that defers by itself began later than its command was sent.
    if (!worker.step.running() || !worker.step_from_idle || worker.told.waits) return;
  } else {
    // A worker on a shared device began when it got its lease: the first step of each lease counts.
    if (worker.granted_at == absl::InfinitePast()) return;
    since = worker.granted_at;
  }
  const absl::Duration latency = state_->now - since - absl::Microseconds(report.elapsed_us());
  // A latency longer than the step means that another step has ended.
  if (latency > absl::Microseconds(report.elapsed_us())) return;
  state_->ModelOf(worker.pair).mutable_seen().ObserveHandoff(latency);
}

void StepTracker::Ended(AttachedWorker* worker, const wire::StepReport& report) {
  LearnHandoffLatency(*worker, report);
  worker->granted_at = absl::InfinitePast();
  worker->step = {};
  worker->step_from_idle = false;
  worker->background_ids = report.background_ids();
  state_->may_start.insert(worker->stream);
  if (worker->role == Role::kLarge) state_->large_steps_changed.insert(worker->pair);
}

void StepTracker::Gone(const AttachedWorker& worker) {
  state_->may_start.erase(worker.stream);
  if (worker.role == Role::kLarge) state_->large_steps_changed.insert(worker.pair);
}

void StepTracker::Predict(const AttachedWorker& worker, RunningStep* step) const {
  step->ids = worker.uncomputed_ids;
  // A prompt that does not fit into a step is prefilled in chunks.
  if (const int64_t most = worker.hello.max_step_ids(); most > 0) {
    step->ids = std::clamp(step->ids, int64_t{step->rows}, std::max<int64_t>(step->rows, most));
  }
  step->predicted = PredictStep(*state_, worker, step->rows, step->ids);
  if (const int64_t most = worker.hello.max_step_us(); most > 0) {
    const absl::Duration least = PredictStep(*state_, worker, step->rows, step->rows);
    step->predicted =
        std::min<absl::Duration>(step->predicted, std::max(least, absl::Microseconds(most)));
  }
  if (step->predicted > absl::ZeroDuration() && worker.step_from_idle) {
    step->predicted += state_->ModelOf(worker.pair).seen().handoff_latency();
  }
}

void StepTracker::StartDue() {
  for (const StreamId stream : state_->may_start) {
    AttachedWorker* const worker = state_->directory.Find(stream);
    if (worker == nullptr || worker->step.running()) continue;
    if (worker->ready == 0) {
      worker->step_from_idle = true;
      continue;
    }
    RunningStep& step = worker->step;
    step.since = state_->now;
    step.rows = worker->ready;
    Predict(*worker, &step);
    if (worker->role == Role::kLarge) state_->large_steps_changed.insert(worker->pair);
  }
  state_->may_start.clear();
}

}  // namespace tokenrouter
