// SimulatedWorker is a worker process on the simulated network: the real WorkerCore on a synthetic
// engine. It can be killed (KV and ids are lost), cut off (they stay), suspended, hung (its loop
// stands still while its heartbeats go on), drained, and its engine can fail, crash on a prompt or
// be slow. simulated_worker.cc is the process and its stream, simulated_worker_steps.cc its steps.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "libs/synthetic/step_curve.h"
#include "libs/synthetic/synthetic_engine.h"
#include "libs/worker/core/worker_core.h"
#include "tests/simulation/process/scheduler_address.h"
#include "tests/simulation/process/simulated_scheduler.h"

namespace tokenrouter::simulation {

// Counts the steps that run at once on a device.
struct DeviceUse {
  int running = 0;
  int worst = 0;
};

struct WorkerSetup {
  WorkerCoreOptions core;
  SyntheticEngineOptions engine;
  std::string numerics_class;  // Empty: that of the engine.
  absl::Duration step_base = absl::Milliseconds(1);
  absl::Duration step_per_id = absl::Microseconds(20);
  // The engine predicts so many times the mean time of a step; 0: it predicts nothing.
  double predicts = 0;
  std::optional<StepCurve> curve;  // If set, replaces step_base, step_per_id and the noise.
  TokenId poison = -1;             // A prompt that begins with it crashes the engine.
};

// What happened to a worker that checks must know of.
struct WorkerTroubles {
  // Since when it serves undisturbed; the infinite future while it does not.
  absl::Time serving_since = absl::InfiniteFuture();
  // From then on nothing that happened to it makes it look dead.
  absl::Time well_since = absl::InfinitePast();
  int disturbances = 0;          // That may look like its loss, crashes on a prompt excepted.
  int poisoned = 0;              // Crashes on a prompt.
  std::set<std::string> failed;  // Requests that were in a step that failed.
};

class SimulatedWorker {
 public:
  // `device`: null for a dedicated device. `timeline` may be null.
  SimulatedWorker(EventQueue* events, RandomSource* random, const SchedulerAddress* address,
                  WorkerSetup setup, WireDelays delays, DeviceUse* device,
                  const Timeline* timeline = nullptr);
  ~SimulatedWorker();

  void Start();
  // It dies, and starts again `down` later.
  void Kill(absl::Duration down);
  // The stream breaks; with `half_open` the scheduler does not notice for a long time.
  void Cut(bool half_open);
  // The whole process stands still.
  void Freeze(absl::Duration time);
  // The loop stands still, the heartbeats go on.
  void Hang(absl::Duration time);
  // So many of the next steps fail, and the next one takes so much longer.
  void SpoilSteps(int fail, absl::Duration more);
  // It asks for no new requests, ends when it has none, or after `patience`, and starts again
  // `down` later.
  void Drain(absl::Duration patience, absl::Duration down);

  const WorkerCoreOptions& options() const { return setup_.core; }
  std::string process() const { return absl::StrCat(setup_.core.worker_id, "-", starts_); }
  const WorkerTroubles& troubles() const { return troubles_; }
  // At the other end of its stream; null while there is none.
  const SimulatedScheduler* scheduler() const { return scheduler_; }
  // At the other end of its stream, or without one of its last stream.
  const SimulatedScheduler* last_scheduler() const { return last_scheduler_; }
  // Sequences or KV blocks.
  bool holds_memory() const { return sequences() > 0 || blocks_in_use() > 0; }
  const WorkerCounters& counters() const { return core_->counters(); }
  std::string Describe() const;

 private:
  class EngineThatPredicts;

  void Dial();
  void DialLater();
  void OnFrame(const wire::CommandFrame& frame);
  void Apply(const wire::CommandFrame& frame);
  void OnClosed();
  void KillIfStuck();
  void GoOnAt(absl::Time when);
  void Disturbed(absl::Time until);
  void Pump();
  absl::Duration MeanOf(int rows, int64_t new_ids) const;
  absl::Duration TimeOf(const StepBatch& batch) const;
  void StartStep();
  void Execute(PlannedStep* step);
  bool Poisoned(const StepBatch& batch) const;
  void FinishStep(int generation, std::shared_ptr<PlannedStep> step);
  void Beat(int generation);
  void Say(const wire::WorkerFrame& frame);
  bool frozen() const { return events_->now() < frozen_until_; }
  bool running() const { return core_ != nullptr; }
  int64_t blocks_in_use() const;
  size_t sequences() const { return core_ == nullptr ? 0 : core_->store().size(); }
  bool still() const { return frozen() || events_->now() < hung_until_; }

  EventQueue* const events_;
  RandomSource* const random_;
  const SchedulerAddress* const address_;
  const WorkerSetup setup_;
  const WireDelays delays_;
  DeviceUse* const device_;
  const Timeline* const timeline_;

  std::unique_ptr<SyntheticEngine> engine_;
  std::unique_ptr<WorkerCore> core_;
  std::shared_ptr<WorkerWire> wire_;
  const SimulatedScheduler* scheduler_ = nullptr;
  const SimulatedScheduler* last_scheduler_ = nullptr;
  int generation_ = 0;  // Number of this process; old events of earlier ones are ignored.
  int starts_ = 0;
  bool stepping_ = false;
  absl::Time step_started_;
  absl::Duration step_predicted_;
  absl::Time frozen_until_;
  absl::Time hung_until_ = absl::InfinitePast();
  absl::Time hung_since_;
  bool closed_unread_ = false;  // The stream ended while the process stood still.
  int failing_ = 0;
  absl::Duration slow_ = absl::ZeroDuration();
  absl::Time stops_at_ = absl::InfiniteFuture();  // The end of a drain at the latest.
  absl::Duration down_after_drain_;
  WorkerTroubles troubles_;
  std::deque<wire::CommandFrame> unread_;  // Frames that arrived while it stood still.
  absl::Time pump_at_ = absl::InfiniteFuture();
};

}  // namespace tokenrouter::simulation
