// A plan for one pair of pools under its present load: when each side should wait, and what routed
// and large-only service would yield. MakePlan runs short simulations (tens of milliseconds), so it
// belongs on a background thread; everything it needs is copied into the inputs.
// Threads: pure. Units: milliseconds and tokens per second.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "libs/batching_model/mode_controller.h"
#include "libs/batching_model/simulator.h"
#include "libs/batching_model/step_time_estimator.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

struct PlanInputs {
  int pair = 0;
  int32_t requests = 1;
  StepTimeEstimator::Coefficients curves[kRoles];
  double spread = 0;  // Relative standard deviation of step times; the larger one of both sides.
  double r = 0.1;
  double q = 1.0;
  double handoff_latency_ms = 0;
  double max_step_ms = 0;  // No step takes more rows than fit into this time; 0: no limit.
  bool shared_device = false;
  // Workers of each pool; a shared device is planned with one of each.
  int workers[kRoles] = {1, 1};
};

struct PairPlan {
  PlanInputs inputs;
  ModePrediction prediction;  // Its policy is the plan's.
};

// The curve as a step cost; never below a microsecond.
StepCost CostOf(const StepTimeEstimator::Coefficients& curve);

// INVALID_ARGUMENT when the inputs are out of a simulation's range.
absl::StatusOr<PairPlan> MakePlan(const PlanInputs& inputs);

}  // namespace tokenrouter
