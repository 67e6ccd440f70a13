#include "tests/simulation/process/simulated_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"

namespace tokenrouter::simulation {
namespace {

constexpr absl::Duration kBeat = absl::Seconds(1);
constexpr absl::Duration kRedial = absl::Milliseconds(50);
constexpr absl::Duration kRestart = absl::Seconds(1);
constexpr absl::Duration kHalfOpen = absl::Seconds(15);
// What a trouble leaves behind: a late heartbeat, frames under way.
constexpr absl::Duration kAftermath = absl::Seconds(2);

}  // namespace

class SimulatedWorker::EngineThatPredicts : public SyntheticEngine {
 public:
  explicit EngineThatPredicts(const SimulatedWorker* worker)
      : SyntheticEngine(worker->setup_.engine), worker_(worker) {}
  absl::Duration Predict(int rows, int64_t new_ids) const override {
    return worker_->MeanOf(rows, new_ids) * worker_->setup_.predicts;
  }

 private:
  const SimulatedWorker* const worker_;
};

SimulatedWorker::SimulatedWorker(EventQueue* events, RandomSource* random,
                                 const SchedulerAddress* address, WorkerSetup setup,
                                 WireDelays delays, DeviceUse* device, const Timeline* timeline)
    : events_(events),
      random_(random),
      address_(address),
      setup_(std::move(setup)),
      delays_(delays),
      device_(device),
      timeline_(timeline) {}

SimulatedWorker::~SimulatedWorker() = default;

void SimulatedWorker::Start() {
  TR_CHECK(core_ == nullptr);
  ++generation_;
  ++starts_;
  engine_ = std::make_unique<EngineThatPredicts>(this);
  WorkerCoreOptions options = setup_.core;
  options.worker_id = process();
  core_ = std::make_unique<WorkerCore>(options, engine_.get());
  troubles_.well_since = std::max(troubles_.well_since, events_->now() + kAftermath);
  frozen_until_ = hung_until_ = absl::InfinitePast();
  pump_at_ = stops_at_ = absl::InfiniteFuture();
  closed_unread_ = false;
  slow_ = absl::ZeroDuration();
  failing_ = 0;
  if (timeline_ != nullptr) timeline_->Note(process(), "starts");
  Dial();
  events_->After(kBeat, [this, generation = generation_] { Beat(generation); });
}

void SimulatedWorker::Kill(absl::Duration down) {
  if (core_ == nullptr) return;
  if (timeline_ != nullptr) timeline_->Note(process(), "dies");
  Disturbed(events_->now());
  ++generation_;
  if (std::exchange(stepping_, false) && device_ != nullptr) --device_->running;
  core_.reset();
  engine_.reset();
  unread_.clear();
  if (wire_ != nullptr) {
    wire_->DropClient();
    wire_->Cut(absl::Hours(1), random_->Between(absl::ZeroDuration(), absl::Milliseconds(5)));
    wire_.reset();
    scheduler_ = nullptr;
  }
  events_->After(down, [this] {
    if (!running()) Start();
  });
}

void SimulatedWorker::Cut(bool half_open) {
  if (wire_ == nullptr) return;
  Disturbed(events_->now());
  wire_->Cut(
      random_->Between(absl::ZeroDuration(), absl::Milliseconds(20)),
      half_open ? kHalfOpen : random_->Between(absl::ZeroDuration(), absl::Milliseconds(20)));
}

void SimulatedWorker::Freeze(absl::Duration time) {
  if (core_ == nullptr) return;
  frozen_until_ = std::max(frozen_until_, events_->now() + time);
  Disturbed(frozen_until_);
  GoOnAt(frozen_until_);
}

void SimulatedWorker::Hang(absl::Duration time) {
  if (core_ == nullptr) return;
  if (!still()) hung_since_ = events_->now();
  hung_until_ = std::max(hung_until_, events_->now() + time);
  Disturbed(hung_until_);
  GoOnAt(hung_until_);
  KillIfStuck();
}

// Whoever watches the process sees that it hangs and is not attached, and ends it.
void SimulatedWorker::KillIfStuck() {
  if (wire_ == nullptr && !frozen() && events_->now() < hung_until_) Kill(kRestart);
}

void SimulatedWorker::Disturbed(absl::Time until) {
  ++troubles_.disturbances;
  troubles_.serving_since = absl::InfiniteFuture();
  troubles_.well_since = std::max(troubles_.well_since, until + kAftermath);
}

void SimulatedWorker::GoOnAt(absl::Time when) {
  events_->At(when, [this, generation = generation_] {
    if (generation != generation_) return;
    if (still()) return KillIfStuck();
    for (const wire::CommandFrame& frame : std::exchange(unread_, {})) {
      if (wire_ != nullptr) wire_->ClientDefers(-1);
      Apply(frame);
    }
    if (std::exchange(closed_unread_, false)) OnClosed();
    Pump();
  });
}

void SimulatedWorker::SpoilSteps(int fail, absl::Duration more) {
  failing_ += fail;
  slow_ += more;
}

void SimulatedWorker::Drain(absl::Duration patience, absl::Duration down) {
  if (core_ == nullptr || stops_at_ != absl::InfiniteFuture()) return;
  core_->BeginDrain();
  Disturbed(events_->now());
  stops_at_ = events_->now() + patience;
  down_after_drain_ = down;
  events_->At(stops_at_, [this, generation = generation_] {
    if (generation == generation_) Pump();
  });
  Pump();
}

int64_t SimulatedWorker::blocks_in_use() const {
  return core_ == nullptr ? 0 : engine_->info().total_blocks - core_->store().free_blocks();
}

std::string SimulatedWorker::Describe() const {
  if (core_ == nullptr) return absl::StrCat(process(), ": dead");
  return absl::StrCat(process(), ": sequences ", core_->store().size(), ", ready ",
                      core_->store().Ready(), ", waiting ", core_->store().Waiting(),
                      ", blocks in use ", blocks_in_use(), stepping_ ? ", stepping" : "",
                      still() ? ", standing still" : "", core_->attached() ? "" : ", not attached");
}

void SimulatedWorker::Dial() {
  if (core_ == nullptr || still()) return DialLater();
  auto wire = std::make_shared<WorkerWire>(events_, random_, delays_);
  SimulatedScheduler* const scheduler = address_->Dial();
  if (!scheduler->Accept(wire)) return DialLater();
  wire_ = wire;
  scheduler_ = last_scheduler_ = scheduler;
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
  Say(hello);
}

void SimulatedWorker::DialLater() {
  events_->After(kRedial, [this, generation = generation_] {
    if (generation == generation_ && wire_ == nullptr) Dial();
  });
}

void SimulatedWorker::OnFrame(const wire::CommandFrame& frame) {
  if (still() || !unread_.empty()) {
    wire_->ClientDefers(1);
    unread_.push_back(frame);
    return;
  }
  Apply(frame);
  Pump();
}

void SimulatedWorker::Apply(const wire::CommandFrame& frame) {
  core_->Apply(frame, events_->now());
  if (!frame.has_attached()) return;
  troubles_.serving_since = events_->now();
  if (timeline_ != nullptr) timeline_->Note(process(), "is attached in term ", frame.term());
}

void SimulatedWorker::OnClosed() {
  troubles_.serving_since = absl::InfiniteFuture();
  wire_.reset();
  scheduler_ = nullptr;
  if (still()) {
    closed_unread_ = true;  // It learns of it when it goes on.
    KillIfStuck();
    return;
  }
  if (timeline_ != nullptr) timeline_->Note(process(), "finds its stream ended");
  core_->Detach();
  unread_.clear();
  DialLater();
}

void SimulatedWorker::Say(const wire::WorkerFrame& frame) {
  if (wire_ == nullptr || wire_->SendUp(frame)) return;
  if (timeline_ != nullptr) timeline_->Note(process(), "finds its stream full and drops it");
  Disturbed(events_->now());
  wire_->DropClient();
  wire_->Cut(absl::Hours(1), random_->Between(absl::ZeroDuration(), absl::Milliseconds(20)));
  // The loop learns of it later, as of any end of a stream.
  events_->After(absl::Microseconds(100), [this, generation = generation_, wire = wire_] {
    if (generation == generation_ && wire == wire_) OnClosed();
  });
}

void SimulatedWorker::Beat(int generation) {
  if (generation != generation_) return;
  if (!frozen() && core_->attached() && wire_ != nullptr) {
    wire::WorkerFrame frame;
    frame.set_term(core_->term());
    wire::Heartbeat* const beat = frame.mutable_heartbeat();
    beat->set_steps(core_->counters().steps);
    if (stepping_) {
      beat->set_step_elapsed_us(
          std::max<int64_t>(1, absl::ToInt64Microseconds(events_->now() - step_started_)));
      beat->set_step_predicted_us(absl::ToInt64Microseconds(step_predicted_));
    }
    if (still()) {
      const absl::Time round = stepping_ ? std::min(step_started_, hung_since_) : hung_since_;
      beat->set_loop_elapsed_us(absl::ToInt64Microseconds(events_->now() - round));
    }
    beat->set_free_blocks(core_->store().free_blocks());
    beat->set_sequences(static_cast<int32_t>(core_->store().size()));
    Say(frame);
    Pump();
  }
  events_->After(kBeat, [this, generation] { Beat(generation); });
}

}  // namespace tokenrouter::simulation
