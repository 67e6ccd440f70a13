// LocalDeferral decides on a small worker with a dedicated device whether rows that are ready wait
// for a fuller batch. It knows the scheduler's last messages (Deferral, PeerStep) and what this
// worker's own steps cost. Every rule that is set may release the rows: least rows, a fixed wait,
// the delay balance; rows wait while none of them does. Independently of the rules, nothing waits
// while the other side is idle, when its step is unknown or overdue, when the step is full, or
// longer than a bound. Threads: not thread-safe; lives with the WorkerCore. Times are the worker's
// own clock. Errors: none; numbers that make no sense (negative, not finite) count as not set.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "libs/batching_model/step_time_estimator.h"
#include "libs/batching_model/wait_outcome.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

// No wait is longer, even if the scheduler allows more.
inline constexpr absl::Duration kLongestDeferral = absl::Seconds(1);

// The step that could start now.
struct ReadyRows {
  int rows = 0;  // At least 1.
  int64_t new_ids = 0;
  absl::Time oldest_since;                        // When its oldest row became ready.
  absl::Time launch_by = absl::InfiniteFuture();  // What its requests allow.
  bool may_wait = true;  // False: a chunk of a prompt, short blocks or a retried step.
  bool full = false;     // More rows than fit are ready.
};

class LocalDeferral {
 public:
  struct Decision {
    absl::Time wait_until = absl::InfinitePast();   // InfinitePast: launch.
    WaitOutcome outcome = WaitOutcome::kImmediate;  // Of a launch.
    bool wait() const { return wait_until != absl::InfinitePast(); }
  };

  explicit LocalDeferral(int max_rows) : max_rows_(max_rows) {}

  // A step of this worker that ran.
  void Observe(int rows, int64_t new_ids, absl::Duration elapsed);
  void SetDeferral(const wire::Deferral& deferral) { deferral_ = deferral; }
  // `arrived`: when the message reached this process.
  void SetPeerStep(const wire::PeerStep& step, absl::Time arrived);
  // Rows that commands made ready since the last PeerStep and that are no longer on their way.
  void CountArrivals(int rows) { arrivals_ += rows; }
  // The stream is gone: nothing waits until the next Deferral. The learned step costs stay.
  void Detach();

  // Call it once at each moment at which a step could start. A launch ends the wait.
  Decision Decide(const ReadyRows& ready, absl::Time now);
  // Nothing is ready any more, so a wait in progress is over.
  void Cancel() { waiting_ = false; }

  // The time of a routed token: a step of this worker and then one of the other side.
  absl::Duration RoundTrip(int rows, int64_t new_ids) const;

 private:
  Decision Judge(const ReadyRows& ready, absl::Time now);
  bool active() const;
  // Whether the delay balance says that the rows of the peer's step are worth waiting for.
  bool WorthWaiting(const ReadyRows& ready, absl::Time now) const;
  absl::Duration peer_predicted() const;

  const int max_rows_;
  StepTimeEstimator times_;
  wire::Deferral deferral_;
  wire::PeerStep peer_;
  absl::Time peer_started_ = absl::InfinitePast();
  int arrivals_ = 0;
  bool waiting_ = false;
};

}  // namespace tokenrouter
