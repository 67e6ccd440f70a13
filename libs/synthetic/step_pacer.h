// StepPacer makes each step of a timed engine last as long as its curve says.
// Threads: used by the engine's owner alone.
#pragma once

#include <ctime>

#include "absl/time/time.h"

namespace tokenrouter {

class StepPacer {
 public:
  virtual ~StepPacer() = default;
  // A step begins.
  virtual void Start() = 0;
  // Returns when `time` has passed since Start; at once when it has already.
  virtual void FinishAfter(absl::Duration time) = 0;
};

// Sleeps until an absolute deadline of the monotonic clock. What the system oversleeps is taken
// off the next step, so that the average keeps to the curve.
class SleepingPacer : public StepPacer {
 public:
  void Start() override;
  void FinishAfter(absl::Duration time) override;

 private:
  // A larger delay means a stopped or starved process and not timer inaccuracy; it is not made up.
  static constexpr absl::Duration kMostOversleep = absl::Milliseconds(1);

  absl::Time start_;
  absl::Duration overslept_;
  bool exact_timers_ = false;  // The thread asked the kernel for them.
};

}  // namespace tokenrouter
