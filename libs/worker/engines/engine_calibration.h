// Calibration measures what steps of an engine cost before the worker attaches, so that the first
// decisions of the scheduler rest on measurements. Real steps run on scratch sequences, the most
// informative shapes first; on a slow engine shapes are measured fewer times, and one that does not
// fit into the rest of the budget is skipped. Afterwards the engine holds no sequence and every
// block is free, as before. Threads: the engine's owner thread; blocks for about the budget, at
// most one step longer. Errors: a step that fails ends the calibration; the measurements until then
// are returned.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "libs/inference/engine.h"
#include "libs/timing/clock.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

inline constexpr absl::Duration kCalibrationBudget = absl::Seconds(2);

struct CalibrationLimits {
  int32_t max_rows = 1;         // Of a step; shapes beyond it are left out.
  int64_t max_step_tokens = 1;  // New ids of a step, likewise.
  absl::Duration budget = kCalibrationBudget;
};

// Shapes looked at so far and in all.
using CalibrationProgress = std::function<void(int done, int total)>;

// One sample per shape: the median of what was measured.
// REQUIRES: the engine holds no sequence.
std::vector<wire::StepSample> Calibrate(const CalibrationLimits& limits, const Clock& clock,
                                        Engine* engine, const CalibrationProgress& progress);

}  // namespace tokenrouter
