#include "services/scheduler/pair_model/plan_schedule.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tokenrouter {
namespace {

// A curve is unknown before this many observations.
constexpr int64_t kLeastObservations = 3;
constexpr size_t kMostPlansKept = 64;

bool Differs(double now, double then, double share) { return std::abs(now - then) > share * then; }

bool Known(const PairObservations& seen) {
  return seen.curve(Role::kSmall).observations() >= kLeastObservations &&
         seen.curve(Role::kLarge).observations() >= kLeastObservations;
}

PlanInputs InputsOf(const PairObservations& seen, int32_t live) {
  PlanInputs inputs{.requests = live,
                    .spread = std::max(seen.curve(Role::kSmall).RelativeSpread(),
                                       seen.curve(Role::kLarge).RelativeSpread()),
                    .r = seen.routed().mean(),
                    .q = seen.returned().mean(),
                    .handoff_latency_ms = absl::ToDoubleMilliseconds(seen.handoff_latency()),
                    .max_step_ms = seen.topology().max_step_ms,
                    .shared_device = seen.topology().shared_device};
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    inputs.curves[static_cast<int>(role)] = seen.curve(role).coefficients();
  }
  return inputs;
}

}  // namespace

bool PlanSchedule::CurveMoved(const PairObservations& seen, Role role) const {
  const StepCost planned = CostOf(plan_->inputs.curves[static_cast<int>(role)]);
  const int rows = std::max(1, plan_->inputs.requests);
  return Differs(seen.PredictMs(role, rows, rows), planned(rows, rows), options_.curve_step) ||
         Differs(seen.PredictMs(role, 1, 1), planned(1, 1), options_.curve_step);
}

bool PlanSchedule::LoadMoved(int32_t live) const {
  return Differs(live, plan_->inputs.requests, load_step_);
}

bool PlanSchedule::RatesMoved(const PairObservations& seen) const {
  return routed_gate_.Moved(seen.routed()) || returned_gate_.Moved(seen.returned()) ||
         CurveMoved(seen, Role::kSmall) || CurveMoved(seen, Role::kLarge) ||
         plan_->inputs.shared_device != seen.topology().shared_device ||
         plan_->inputs.max_step_ms != seen.topology().max_step_ms;
}

void PlanSchedule::Recall(int32_t live) {
  if (live <= 0 || !plan_ || !LoadMoved(live)) return;
  auto best = kept_.end();
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if (Differs(live, it->first, load_step_)) continue;
    if (best == kept_.end() || std::abs(it->first - live) < std::abs(best->first - live)) best = it;
  }
  if (best != kept_.end()) plan_ = best->second;
}

std::optional<PlanInputs> PlanSchedule::Wanted(const PairObservations& seen, int32_t live,
                                               absl::Time now) {
  if (live <= 0 || planning_ || !Known(seen)) return std::nullopt;
  const absl::Duration pause =
      std::max(options_.least_plan_interval, plan_cost_ / options_.most_plan_share);
  if (now - planned_at_ < pause) return std::nullopt;
  const bool holds = Fits(live) && !RatesMoved(seen) && now - planned_at_ < options_.most_plan_age;
  if (holds) return std::nullopt;
  planning_ = true;
  // Cleared here, not when the plan comes back, because rates move while it is made.
  if (!plan_ || RatesMoved(seen)) kept_.clear();
  routed_gate_.Planned(seen.routed());
  returned_gate_.Planned(seen.returned());
  return InputsOf(seen, live);
}

void PlanSchedule::Adopt(const std::optional<PairPlan>& plan, absl::Duration cost, absl::Time now) {
  planning_ = false;
  planned_at_ = now;
  plan_cost_ = cost;
  planning_time_ += cost;
  ++made_total_;
  if (!plan) return;
  if (kept_.size() >= kMostPlansKept) kept_.clear();
  plan_ = plan;
  kept_[plan->inputs.requests] = *plan;
}

}  // namespace tokenrouter
