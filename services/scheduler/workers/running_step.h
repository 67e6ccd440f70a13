// RunningStep is what the scheduler assumes that a worker computes now. A step begins when a worker
// that runs nothing gets rows, or when a step ended and rows are left; it ends with its StepReport.
// Durations are as seen by the scheduler: from the command that starts a step until its report, one
// handoff latency more than the worker needs.
// Threads: pure; the values live on the scheduler's loop.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace tokenrouter {

struct RunningStep {
  absl::Time since;
  int32_t rows = 0;  // 0: no step runs.
  int64_t ids = 0;
  // Zero: unknown, because no such step was measured yet.
  absl::Duration predicted = absl::ZeroDuration();

  bool running() const { return rows > 0; }
};

// The mean remaining time when step times have the relative spread `spread`. REQUIRES: running().
absl::Duration Remaining(const RunningStep& step, double spread, absl::Time now);

// From when on no row waits for the step's end any more. REQUIRES: running().
absl::Time LatestEnd(const RunningStep& step, double spread);

}  // namespace tokenrouter
