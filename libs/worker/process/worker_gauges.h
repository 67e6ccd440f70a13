// WorkerGauges is what the engine thread lets other threads see while a step runs: heartbeats and
// the admin port never wait for it. Threads: every method is thread-safe; Set and Loop methods
// belong to the engine thread. Durations are of one clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "libs/concurrency/mutex.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

// For probes. Between two steps a round of the loop takes milliseconds. A step is judged as the
// scheduler does it, with more patience: the scheduler has given the worker up by then, and this
// ends its process.
inline constexpr absl::Duration kStepLoopWedged = absl::Seconds(30);
inline constexpr absl::Duration kStepWedged = absl::Minutes(2);
inline constexpr double kStepWedgedFactor = 40;  // Of what was predicted.

class WorkerGauges {
 public:
  // The loop goes round: it has something to do, or looks whether it has.
  void LoopRuns(absl::Time now) {
    MutexLock lock(&mutex_);
    loop_runs_ = true;
    loop_round_ = now;
  }
  // It waits for something to do.
  void LoopSleeps() {
    MutexLock lock(&mutex_);
    loop_runs_ = false;
  }
  // UNAVAILABLE while the loop is stuck.
  absl::Status Alive(absl::Time now) const {
    MutexLock lock(&mutex_);
    if (!loop_runs_) return absl::OkStatus();
    const absl::Duration stuck = now - (step_runs_ ? step_started_ : loop_round_);
    const absl::Duration bound =
        step_runs_ ? std::max(kStepWedged, step_predicted_ * kStepWedgedFactor) : kStepLoopWedged;
    if (stuck <= bound) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat(step_runs_ ? "a step has run for " : "the step loop has not gone round for ",
                     absl::FormatDuration(stuck)));
  }

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
    if (loop_runs_) {
      heartbeat.set_loop_elapsed_us(absl::ToInt64Microseconds(now - loop_round_));
    }
    return heartbeat;
  }

 private:
  mutable Mutex mutex_;
  bool step_runs_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time step_started_ ABSL_GUARDED_BY(mutex_);
  absl::Duration step_predicted_ ABSL_GUARDED_BY(mutex_);
  bool loop_runs_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time loop_round_ ABSL_GUARDED_BY(mutex_);
  uint64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t free_blocks_ ABSL_GUARDED_BY(mutex_) = 0;
  int32_t sequences_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tokenrouter
