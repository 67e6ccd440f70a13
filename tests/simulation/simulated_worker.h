// SimulatedWorker is a worker process on the simulated network: the real WorkerCore on a synthetic
// engine. It can be killed (KV and ids are lost), cut off (they stay) or suspended for a while.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "libs/synthetic/step_curve.h"
#include "libs/synthetic/synthetic_engine.h"
#include "libs/worker/core/worker_core.h"
#include "tests/simulation/simulated_scheduler.h"

namespace tokenrouter::simulation {

// Counts the steps that run at once on a device.
struct DeviceUse {
  int running = 0;
  int worst = 0;
};

struct WorkerSetup {
  WorkerCoreOptions core;
  HashEngineOptions engine;
  std::string numerics_class;  // Empty: that of the engine.
  absl::Duration step_base = absl::Milliseconds(1);
  absl::Duration step_per_id = absl::Microseconds(20);
  std::optional<StepCurve> curve;  // If set, replaces step_base, step_per_id and the noise.
};

class SimulatedWorker {
 public:
  // `device`: null for a dedicated device.
  SimulatedWorker(EventQueue* events, RandomSource* random, SimulatedScheduler* scheduler,
                  WorkerSetup setup, WireDelays delays, DeviceUse* device)
      : events_(events),
        random_(random),
        scheduler_(scheduler),
        setup_(std::move(setup)),
        delays_(delays),
        device_(device) {}

  void Start();
  void Kill();
  // The stream breaks; with `half_open` the scheduler does not notice for a long time.
  void Cut(bool half_open);
  void Freeze(absl::Duration time);
  bool running() const { return core_ != nullptr; }
  // Blocks and sequences in use; 0 for a dead worker.
  int64_t blocks_in_use() const;
  size_t sequences() const { return core_ == nullptr ? 0 : core_->store().size(); }
  const WorkerCounters& counters() const { return core_->counters(); }
  std::string Describe() const;

 private:
  void Dial();
  void DialLater();
  void OnFrame(const wire::CommandFrame& frame);
  void OnClosed();
  void Pump();
  absl::Duration TimeOf(const StepBatch& batch) const;
  void StartStep();
  void FinishStep(int generation, std::shared_ptr<PlannedStep> step);
  void Beat(int generation);
  void Say(const wire::WorkerFrame& frame);
  bool frozen() const { return events_->now() < frozen_until_; }

  EventQueue* const events_;
  RandomSource* const random_;
  SimulatedScheduler* const scheduler_;
  const WorkerSetup setup_;
  const WireDelays delays_;
  DeviceUse* const device_;

  std::unique_ptr<SyntheticEngine> engine_;
  std::unique_ptr<WorkerCore> core_;
  std::shared_ptr<WorkerWire> wire_;
  int generation_ = 0;  // Number of this process; old events of earlier ones are ignored.
  int starts_ = 0;
  bool stepping_ = false;
  absl::Time step_started_;
  absl::Time frozen_until_;
  std::deque<wire::CommandFrame> unread_;  // Frames that arrived while it was suspended.
  absl::Time pump_at_ = absl::InfiniteFuture();
};

}  // namespace tokenrouter::simulation
