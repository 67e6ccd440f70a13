// RunningStep is what the scheduler believes that a worker computes now: a step begins when rows
// are given to a worker that runs nothing, or when a step ended and rows are left, and ends with
// its StepReport. Durations are as seen from here: from the command that starts a step until its
// report, one hop more than the worker needs.
// Threads: pure; the values live on the scheduler's loop.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace tokenrouter {

struct RunningStep {
  absl::Time since;
  int32_t rows = 0;  // 0: nothing runs.
  int64_t ids = 0;
  absl::Duration predicted = absl::ZeroDuration();  // Zero: unknown, no such step was measured yet.

  bool running() const { return rows > 0; }
};

// Mean time until the end when step times spread by `spread`, relative. REQUIRES: running().
absl::Duration Remaining(const RunningStep& step, double spread, absl::Time now);

// Whether nobody should wait for the end: there is no prediction, or it is overdue by more than
// three standard deviations.
bool EndUnknown(const RunningStep& step, double spread, absl::Time now);

}  // namespace tokenrouter
