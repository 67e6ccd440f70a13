#include "tests/simulation/simulated_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"

namespace tokenrouter::simulation {
namespace {

constexpr absl::Duration kBeat = absl::Seconds(1);
constexpr absl::Duration kRedial = absl::Milliseconds(50);
constexpr absl::Duration kHalfOpen = absl::Seconds(15);

}  // namespace

void SimulatedWorker::Start() {
  TR_CHECK(core_ == nullptr);
  ++generation_;
  ++starts_;
  engine_ = std::make_unique<SyntheticEngine>(setup_.engine);
  WorkerCoreOptions options = setup_.core;
  options.worker_id = absl::StrCat(options.worker_id, "-", starts_);
  core_ = std::make_unique<WorkerCore>(options, engine_.get());
  frozen_until_ = absl::InfinitePast();
  pump_at_ = absl::InfiniteFuture();
  Dial();
  events_->After(kBeat, [this, generation = generation_] { Beat(generation); });
}

void SimulatedWorker::Kill() {
  if (core_ == nullptr) return;
  ++generation_;
  if (std::exchange(stepping_, false) && device_ != nullptr) --device_->running;
  core_.reset();
  engine_.reset();
  unread_.clear();
  if (wire_ != nullptr) {
    wire_->DropClient();
    wire_->Cut(absl::Hours(1), random_->Between(absl::ZeroDuration(), absl::Milliseconds(5)));
    wire_.reset();
  }
}

void SimulatedWorker::Cut(bool half_open) {
  if (wire_ == nullptr) return;
  wire_->Cut(
      random_->Between(absl::ZeroDuration(), absl::Milliseconds(20)),
      half_open ? kHalfOpen : random_->Between(absl::ZeroDuration(), absl::Milliseconds(20)));
}

void SimulatedWorker::Freeze(absl::Duration time) {
  if (core_ == nullptr) return;
  frozen_until_ = events_->now() + time;
  events_->At(frozen_until_, [this, generation = generation_] {
    if (generation != generation_ || frozen()) return;
    for (const wire::CommandFrame& frame : std::exchange(unread_, {})) {
      core_->Apply(frame, events_->now());
    }
    Pump();
  });
}

int64_t SimulatedWorker::blocks_in_use() const {
  return core_ == nullptr ? 0 : engine_->info().total_blocks - core_->store().free_blocks();
}

std::string SimulatedWorker::Describe() const {
  if (core_ == nullptr) return absl::StrCat(setup_.core.worker_id, ": dead");
  return absl::StrCat(setup_.core.worker_id, ": sequences ", core_->store().size(), ", ready ",
                      core_->store().Ready(), ", waiting ", core_->store().Waiting(),
                      ", blocks in use ", blocks_in_use(), stepping_ ? ", stepping" : "",
                      frozen() ? ", frozen" : "");
}

void SimulatedWorker::Dial() {
  if (core_ == nullptr) return;
  auto wire = std::make_shared<WorkerWire>(events_, random_, delays_);
  if (!scheduler_->Accept(wire)) return DialLater();
  wire_ = wire;
  wire_->SetClient({[this, generation = generation_](const wire::CommandFrame& frame) {
                      if (generation == generation_) OnFrame(frame);
                    },
                    [this, generation = generation_] {
                      if (generation == generation_) OnClosed();
                    }});
  wire::WorkerFrame hello = core_->Hello();
  if (!setup_.numerics_class.empty()) {
    hello.mutable_hello()->set_numerics_class(setup_.numerics_class);
  }
  wire_->SendUp(hello);
}

void SimulatedWorker::DialLater() {
  events_->After(kRedial, [this, generation = generation_] {
    if (generation == generation_ && wire_ == nullptr) Dial();
  });
}

void SimulatedWorker::OnFrame(const wire::CommandFrame& frame) {
  if (frozen() || !unread_.empty()) {
    unread_.push_back(frame);
    return;
  }
  core_->Apply(frame, events_->now());
  Pump();
}

void SimulatedWorker::OnClosed() {
  core_->Detach();
  unread_.clear();
  wire_.reset();
  DialLater();
}

void SimulatedWorker::Say(const wire::WorkerFrame& frame) {
  if (wire_ != nullptr) wire_->SendUp(frame);
}

void SimulatedWorker::Pump() {
  if (frozen() || core_ == nullptr) return;
  if (!stepping_) {
    if (const auto pending = core_->TakePending(events_->now())) Say(*pending);
    StartStep();
    if (const auto pending = core_->TakePending(events_->now())) Say(*pending);
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

absl::Duration SimulatedWorker::TimeOf(const StepBatch& batch) const {
  if (setup_.curve) {
    return setup_.curve->Mean(static_cast<int>(batch.rows.size()), batch.new_ids());
  }
  const absl::Duration time = setup_.step_base + setup_.step_per_id * batch.new_ids();
  return time + random_->Between(absl::ZeroDuration(), time / 4);
}

void SimulatedWorker::StartStep() {
  std::optional<PlannedStep> planned = core_->Plan(events_->now());
  if (!planned) return;
  auto step = std::make_shared<PlannedStep>(*std::move(planned));
  core_->Execute(step.get()).IgnoreError();
  stepping_ = true;
  step_started_ = events_->now();
  if (device_ != nullptr) device_->worst = std::max(device_->worst, ++device_->running);
  events_->After(TimeOf(step->batch),
                 [this, generation = generation_, step] { FinishStep(generation, step); });
}

void SimulatedWorker::FinishStep(int generation, std::shared_ptr<PlannedStep> step) {
  if (generation != generation_) return;
  if (frozen()) {
    events_->At(frozen_until_, [this, generation, step] { FinishStep(generation, step); });
    return;
  }
  stepping_ = false;
  if (device_ != nullptr) --device_->running;
  const wire::WorkerFrame frame = core_->Complete(std::move(*step), events_->now());
  if (core_->attached()) Say(frame);
  Pump();
}

void SimulatedWorker::Beat(int generation) {
  if (generation != generation_) return;
  if (!frozen() && core_->attached()) {
    wire::WorkerFrame frame;
    frame.set_term(core_->term());
    wire::Heartbeat* const beat = frame.mutable_heartbeat();
    beat->set_steps(core_->counters().steps);
    if (stepping_) {
      beat->set_step_elapsed_us(absl::ToInt64Microseconds(events_->now() - step_started_));
    }
    beat->set_free_blocks(core_->store().free_blocks());
    beat->set_sequences(static_cast<int32_t>(core_->store().size()));
    Say(frame);
    Pump();
  }
  events_->After(kBeat, [this, generation] { Beat(generation); });
}

}  // namespace tokenrouter::simulation
