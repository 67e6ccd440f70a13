// StepLoop drives a WorkerCore on one thread: it takes frames from the stream, runs steps while
// something is ready, sends one frame per step, and dials again when the stream is lost. It sleeps
// only when there is nothing to do.
// Ownership: owns nothing; all parts must outlive it. Threads: Run on the engine's owner thread;
// BeginDrain and Stop from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "libs/inference/engine.h"
#include "libs/timing/clock.h"
#include "libs/worker/core/worker_core.h"
#include "libs/worker/process/attach_client.h"
#include "libs/worker/process/attach_inbox.h"
#include "libs/worker/process/worker_gauges.h"
#include "libs/worker/process/worker_metrics.h"
#include "libs/worker/process/worker_phase.h"

namespace tokenrouter {

class StepLoop {
 public:
  struct Parts {
    WorkerCore* core;
    const Engine* engine;
    AttachClient* client;
    AttachInbox* inbox;
    WorkerGauges* gauges;
    WorkerMetrics* metrics;
    WorkerPhase* phase;
    const Clock* clock;
  };

  explicit StepLoop(const Parts& parts) : parts_(parts) {}

  // Returns after Stop, or when a drain is over: its time is up or nothing is open any more.
  void Run();
  void BeginDrain(absl::Duration patience);
  void Stop();

 private:
  void TakeInbox(absl::Duration timeout);
  void OnLost(const absl::Status& why);
  void Dial();
  // True when there was something to do.
  bool Work();
  bool SendPending(absl::Time now);
  void RunStep(PlannedStep step);
  void CheckDrain();
  void Observe();
  absl::Duration IdleTime() const;

  const Parts parts_;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> drain_ms_{-1};  // -1: not draining.
  absl::Time drain_deadline_ = absl::InfiniteFuture();
  bool connected_ = false;  // A stream exists; it may not be attached yet.
  bool was_attached_ = false;
  absl::Time dial_at_ = absl::InfinitePast();
  int failures_ = 0;          // Attempts to reach the scheduler since it was attached.
  std::string last_failure_;  // Logged once for as long as it stays the same.
};

}  // namespace tokenrouter
