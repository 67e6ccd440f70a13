// What a small worker with a device of its own is told about waiting. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "absl/time/time.h"
#include "libs/batching_model/simulator.h"
#include "proto/packages.h"
#include "services/scheduler/workers/running_step.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

// All fields 0 where nothing waits. `large_spread`: relative spread of large steps.
wire::Deferral DeferralOf(const BatchingPolicy& policy, double large_spread, absl::Duration cap);

// Whether the worker must be told: the rule itself differs, or the spread by more than a few
// hundredths.
bool DeferralDiffers(const wire::Deferral& told, const wire::Deferral& now);

// A step of a large worker, and how many of its rows have their small side on the worker that is to
// be told.
struct LargeStep {
  RunningStep step;
  int32_t rows_from_here = 0;
};

// The step that ends soonest of those with rows from here; nothing: the large side does nothing for
// this worker.
std::optional<LargeStep> RelevantStep(std::span<const LargeStep> steps);

}  // namespace tokenrouter
