// The one rule for waiting on two devices, which the scheduler, the small workers and the simulator
// share: a side that could start a step waits for rows that a step elsewhere will bring iff what
// that saves exceeds what it costs. Both are request-time, because in a closed loop of N requests
// that commits g tokens per second, a millisecond of any request is worth g / N tokens:
//   saved  A T             each of the A arriving rows is spared a mean step of this side
//   cost   (k + A) delay   all rows of the common step end later by the wait w and by what the step
//                          grows: delay = w + t(k+n) - t(k), n = max(1, round(A))
// so that waiting pays iff w < tau* = A T / (k + A) - (t(k+n) - t(k)) (docs/batching/theory.md).
// Units: milliseconds. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/functional/function_ref.h"

namespace tokenrouter {

// Predicted milliseconds of an own step of that many rows and new ids.
using OwnStepMs = absl::FunctionRef<double(int rows, int64_t new_ids)>;

// The rows that could start now.
struct StartableRows {
  int rows = 1;  // k, at least 1.
  int64_t ids = 1;
  double ids_per_arrival = 1;  // Mean new ids of an arriving row.
  // T, the mean step of this side under the plan. 0: unknown, t(n) stands in.
  double mean_step_ms = 0;
};

// A step elsewhere that will bring rows.
struct AwaitedStep {
  // From when this side can start until those rows are here: what waiting costs. The time in which
  // its own step runs counts as none.
  double wait_ms = 0;
  double rows = 0;  // The mean number that it brings.
};

// The most steps that one decision looks at, those that end first.
inline constexpr size_t kMostAwaitedSteps = 8;

// tau* against `arrivals` rows; <= 0: waiting for them never pays. REQUIRES: ready.rows >= 1.
double DelayBalanceThreshold(const StartableRows& ready, double arrivals, OwnStepMs own_step);

// The first of `steps` whose end is worth waiting for, with the rows of those before it; none:
// start now. REQUIRES: `steps` in the order of their waits.
std::optional<size_t> WorthAwaiting(const StartableRows& ready, std::span<const AwaitedStep> steps,
                                    OwnStepMs own_step);

}  // namespace tokenrouter
