// WorkerGauges publishes the state of the engine thread while a step runs, so heartbeats and the
// admin port never wait for it. Threads: every method is thread-safe; Set methods belong to the
// engine thread. Durations are of one clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "libs/concurrency/mutex.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

class WorkerGauges {
 public:
  void StepStarts(absl::Time now, absl::Duration predicted) {
    MutexLock lock(&mutex_);
    step_started_ = now;
    step_predicted_ = predicted;
    step_runs_ = true;
  }
  void StepEnded() {
    MutexLock lock(&mutex_);
    step_runs_ = false;
  }
  void SetLoad(uint64_t steps, int64_t free_blocks, int32_t sequences) {
    MutexLock lock(&mutex_);
    steps_ = steps;
    free_blocks_ = free_blocks;
    sequences_ = sequences;
  }

  wire::Heartbeat Heartbeat(absl::Time now) const {
    MutexLock lock(&mutex_);
    wire::Heartbeat heartbeat;
    heartbeat.set_steps(steps_);
    heartbeat.set_free_blocks(free_blocks_);
    heartbeat.set_sequences(sequences_);
    if (step_runs_) {
      heartbeat.set_step_elapsed_us(
          std::max<int64_t>(1, absl::ToInt64Microseconds(now - step_started_)));
      heartbeat.set_step_predicted_us(absl::ToInt64Microseconds(step_predicted_));
    }
    return heartbeat;
  }

 private:
  mutable Mutex mutex_;
  bool step_runs_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time step_started_ ABSL_GUARDED_BY(mutex_);
  absl::Duration step_predicted_ ABSL_GUARDED_BY(mutex_);
  uint64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t free_blocks_ ABSL_GUARDED_BY(mutex_) = 0;
  int32_t sequences_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tokenrouter
