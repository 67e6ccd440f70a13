// The deferral rule that is sent to a small worker on a dedicated device. Pure.
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

// All fields are 0 where no row waits. `large_spread`: the relative spread of large steps.
wire::Deferral DeferralOf(const BatchingPolicy& policy, double large_spread, absl::Duration cap);

// Whether rows may wait under the rule.
bool MayWait(const wire::Deferral& rule);

// Whether the rule must be sent again: the rule itself differs, or the spread by more than a few
// hundredths.
bool DeferralDiffers(const wire::Deferral& sent, const wire::Deferral& now);

// A step of a large worker, and how many of its rows have their small side on the small worker that
// the step is sent to.
struct LargeStep {
  RunningStep step;
  int32_t rows_from_here = 0;
};

// The step that ends soonest among those with rows from that worker. No value when no such step has
// a predicted end.
std::optional<LargeStep> RelevantStep(std::span<const LargeStep> steps);

}  // namespace tokenrouter
