#include "services/scheduler/pair_model/pair_plan.h"

#include <algorithm>

#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

constexpr double kLeastStepMs = 0.001;
// Rates of 0 or 1 mean that the event was not seen yet, not that it never happens.
constexpr double kLeastRate = 0.002;
constexpr double kMostRouted = 0.98;

}  // namespace

StepCost CostOf(const StepTimeEstimator::Coefficients& curve) {
  return [curve](int rows, int64_t new_ids) {
    return std::max(kLeastStepMs, curve.At(rows, new_ids));
  };
}

absl::StatusOr<PairPlan> MakePlan(const PlanInputs& inputs) {
  const SimulationSetup setup{.small = CostOf(inputs.curves[0]),
                              .large = CostOf(inputs.curves[1]),
                              .shared_device = inputs.shared_device,
                              .small_workers = inputs.shared_device ? 1 : inputs.workers[0],
                              .large_workers = inputs.shared_device ? 1 : inputs.workers[1],
                              .distributed = !inputs.shared_device,
                              .requests = inputs.requests,
                              .r = std::clamp(inputs.r, kLeastRate, kMostRouted),
                              .q = std::clamp(inputs.q, kLeastRate, 1.0),
                              .noise_cv = std::min(inputs.spread, 1.0),
                              .hop_ms = inputs.handoff_latency_ms,
                              .max_step_ms = inputs.max_step_ms};
  PairPlan plan{.inputs = inputs, .prediction = {}};
  TR_ASSIGN_OR_RETURN(plan.prediction, PredictModes(setup));
  return plan;
}

}  // namespace tokenrouter
