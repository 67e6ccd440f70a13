// The steps of a simulated worker.
#include <algorithm>
#include <utility>

#include "tests/simulation/process/simulated_worker.h"

namespace tokenrouter::simulation {
namespace {

constexpr absl::Duration kRestart = absl::Milliseconds(500);  // After a crash.

}  // namespace

void SimulatedWorker::Pump() {
  if (core_ == nullptr || still()) return;
  if (!stepping_) {
    if (const auto pending = core_->TakePending(events_->now())) Say(*pending);
    StartStep();
    if (const auto pending = core_->TakePending(events_->now())) Say(*pending);
  }
  const bool drained = !core_->attached() || core_->store().size() == 0;
  if (stops_at_ != absl::InfiniteFuture() && (drained || events_->now() >= stops_at_)) {
    return Kill(down_after_drain_);
  }
  const absl::Time next = core_->NextDeadline();
  if (next == absl::InfiniteFuture() || (pump_at_ > events_->now() && pump_at_ <= next)) return;
  pump_at_ = std::max(next, events_->now() + absl::Microseconds(100));
  events_->At(pump_at_, [this, generation = generation_] {
    if (generation != generation_) return;
    pump_at_ = absl::InfiniteFuture();
    Pump();
  });
}

absl::Duration SimulatedWorker::MeanOf(int rows, int64_t new_ids) const {
  if (setup_.curve) return setup_.curve->Mean(rows, new_ids);
  return setup_.step_base + setup_.step_per_id * new_ids;
}

absl::Duration SimulatedWorker::TimeOf(const StepBatch& batch) const {
  const absl::Duration time = MeanOf(static_cast<int>(batch.rows.size()), batch.new_ids());
  if (setup_.curve) return time;
  return time + random_->Between(absl::ZeroDuration(), time / 4);
}

void SimulatedWorker::StartStep() {
  std::optional<PlannedStep> planned = core_->Plan(events_->now());
  if (!planned) return;
  auto step = std::make_shared<PlannedStep>(*std::move(planned));
  const bool crashes = Poisoned(step->batch);
  Execute(step.get());
  stepping_ = true;
  step_started_ = events_->now();
  step_predicted_ = step->predicted;
  if (device_ != nullptr) device_->worst = std::max(device_->worst, ++device_->running);
  const absl::Duration more = std::exchange(slow_, absl::ZeroDuration());
  if (more > absl::ZeroDuration()) Disturbed(events_->now() + more);
  events_->After(TimeOf(step->batch) + more, [this, generation = generation_, step, crashes] {
    if (!crashes) return FinishStep(generation, step);
    if (generation != generation_) return;
    if (timeline_ != nullptr) timeline_->Note(process(), "crashes on a prompt");
    ++troubles_.poisoned;
    --troubles_.disturbances;
    Kill(kRestart);
  });
}

void SimulatedWorker::Execute(PlannedStep* step) {
  if (failing_ == 0) {
    core_->Execute(step).IgnoreError();
    return;
  }
  --failing_;
  step->status = absl::InternalError("the engine fails");
  for (const PlannedStep::Row& row : step->rows) {
    const auto found = core_->store().table().all().find(row.sequence);
    if (found != core_->store().table().all().end())
      troubles_.failed.insert(found->second->request_id);
  }
}

bool SimulatedWorker::Poisoned(const StepBatch& batch) const {
  return std::any_of(batch.rows.begin(), batch.rows.end(), [this](const StepRow& row) {
    return row.first == 0 && row.new_ids.front() == setup_.poison;
  });
}

void SimulatedWorker::FinishStep(int generation, std::shared_ptr<PlannedStep> step) {
  if (generation != generation_) return;
  if (still()) {
    events_->At(std::max(frozen_until_, hung_until_),
                [this, generation, step] { FinishStep(generation, step); });
    return;
  }
  stepping_ = false;
  if (device_ != nullptr) --device_->running;
  const wire::WorkerFrame frame = core_->Complete(std::move(*step), events_->now());
  if (core_->attached()) Say(frame);
  Pump();
}

}  // namespace tokenrouter::simulation
