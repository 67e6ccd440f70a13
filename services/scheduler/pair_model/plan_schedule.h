// PlanSchedule keeps the plan of one pair: it says when a new one should be made from what was
// seen, takes it when it comes back, and recalls an earlier one for a load that has returned.
// Threads: lives on the scheduler's loop. Cost: O(kept plans) per call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "libs/batching_model/rate_estimator.h"
#include "services/scheduler/pair_model/pair_observations.h"
#include "services/scheduler/pair_model/pair_plan.h"

namespace tokenrouter {

struct PlanScheduleOptions {
  // The least time between two plans, and the largest share of the time that is spent on making
  // them.
  absl::Duration least_plan_interval = absl::Milliseconds(250);
  double most_plan_share = 0.05;
  // A plan is made anew when the load has moved (load_step), when a curve has moved by curve_step,
  // or when it is older than most_plan_age.
  double curve_step = 0.1;
  absl::Duration most_plan_age = absl::Seconds(30);
};

class PlanSchedule {
 public:
  // `load_step`: a load that has moved by this share is another one.
  PlanSchedule(const PlanScheduleOptions& options, double load_step)
      : options_(options), load_step_(load_step) {}

  // Takes an earlier plan for about this many requests, if the present one is for another load.
  void Recall(int32_t live);
  // The inputs of a plan that should be made; no value while the last plan holds or one is being
  // made.
  std::optional<PlanInputs> Wanted(const PairObservations& seen, int32_t live, absl::Time now);
  // `cost`: the time that making it took. A plan that could not be made has no value.
  void Adopt(const std::optional<PairPlan>& plan, absl::Duration cost, absl::Time now);

  const std::optional<PairPlan>& plan() const { return plan_; }
  // Whether there is a plan for such a load.
  bool Fits(int32_t live) const { return plan_ && !LoadMoved(live); }
  uint64_t made() const { return made_total_; }
  absl::Duration planning_time() const { return planning_time_; }
  absl::Duration last_cost() const { return plan_cost_; }
  absl::Time planned_at() const { return planned_at_; }

 private:
  bool LoadMoved(int32_t live) const;
  bool RatesMoved(const PairObservations& seen) const;
  bool CurveMoved(const PairObservations& seen, Role role) const;

  const PlanScheduleOptions options_;
  const double load_step_;
  bool planning_ = false;
  std::optional<PairPlan> plan_;
  // Plans made since rates and curves last moved, by requests: a load that comes back needs no new
  // plan.
  std::map<int32_t, PairPlan> kept_;
  RetuneGate routed_gate_, returned_gate_;
  absl::Time planned_at_ = absl::InfinitePast();
  absl::Duration plan_cost_;
  uint64_t made_total_ = 0;
  absl::Duration planning_time_;
};

}  // namespace tokenrouter
