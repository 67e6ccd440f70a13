// PairModel is what the scheduler has learned about one pair while serving it, and the decisions
// that follow: how long steps take, how often requests change sides, the batching policy in force,
// and whether routing pays at all. Workers' reports go in, decisions are read; plans are made
// elsewhere (pair_plan.h) from the inputs that Wanted returns, and come back through Adopt.
// Until the first plan every request is routed and the policy is the safe default.
// Threads: lives on the scheduler's loop. Cost: O(1) per call. Units: milliseconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "libs/batching_model/mode_controller.h"
#include "libs/batching_model/prompt_worth.h"
#include "libs/batching_model/rate_estimator.h"
#include "libs/batching_model/simulator.h"
#include "libs/batching_model/step_time_estimator.h"
#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "services/scheduler/pair_model/mode_choice.h"
#include "services/scheduler/pair_model/pair_plan.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

struct PairModelOptions {
  // The threshold of a shared device until there is a plan, as a share of the live requests.
  double default_fraction = 0.4;
  // The least time between two plans, and the largest share of the time that is spent on making
  // them.
  absl::Duration least_plan_interval = absl::Milliseconds(250);
  double most_plan_share = 0.05;
  // A plan is made anew when the load has moved (mode.load_step), when a curve has moved by
  // curve_step, or when it is older than most_plan_age.
  double curve_step = 0.1;
  absl::Duration most_plan_age = absl::Seconds(30);
  // The model counts as unknown until r was observed in this many steps, because the first tokens
  // of an answer are not like the rest.
  double least_routed_trials = 200;
  ModeChoiceOptions mode;
};

class PairModel {
 public:
  explicit PairModel(const PairModelOptions& options) : options_(options), mode_(options.mode) {}

  // ---- learning ----
  void ObserveStep(Role role, int32_t rows, int64_t new_ids, absl::Duration elapsed);
  // Steps of single rows after which the algorithm could have handed off, and how often it did.
  void ObserveRows(Role role, int64_t steps, int64_t handoffs);
  void ObserveVerified(int64_t tokens, int64_t kept) { acceptance_rate_.Observe(tokens, kept); }
  void ObserveHandoff(absl::Duration latency);
  // A request wrote its first token: the uncached ids of its prompt, and the tokens that it may
  // write.
  void ObserveBegun(int32_t uncomputed_ids, int32_t most_tokens);
  void ObserveFinished(int32_t generated);
  // Tokens of either author.
  void ObserveCommitted(int64_t tokens) { mode_.Commit(tokens); }
  // Live requests that prefill their prompt. To be called before every Wanted.
  void ObserveReading(int32_t requests) { mode_.Expect(requests, MeanAnswer()); }

  // ---- deciding ----
  // The policy in force for `live` requests of a pair that runs under its plan.
  BatchingPolicy Policy(int32_t live) const;
  ServiceMode mode() const { return mode_.mode(); }
  // See ModeChoice.
  bool TakeProbe(absl::Time now) { return mode_.TakeProbe(now); }
  bool ProbeDue(absl::Time now) const { return mode_.ProbeDue(now); }
  // Whether a request with such a prompt gains by being routed, according to the present plan.
  bool PromptWorthRouting(int32_t prompt_ids, int32_t most_tokens) const;

  // ---- planning ----
  // Whether both sides share one device, and the longest step that the workers allow.
  void SetTopology(bool shared_device, absl::Duration max_step) {
    shared_device_ = shared_device;
    const bool limited = max_step < absl::InfiniteDuration();
    max_step_ms_ = limited ? absl::ToDoubleMilliseconds(max_step) : 0;
  }
  // Follows the load, and returns the inputs of a plan that should be made; no value while the last
  // plan holds or one is being made.
  std::optional<PlanInputs> Wanted(int32_t live, absl::Time now);
  // `cost`: the time that making it took. A plan that could not be made has no value.
  void Adopt(const std::optional<PairPlan>& plan, absl::Duration cost, absl::Time now);

  // ---- accessors ----
  const StepTimeEstimator& curve(Role role) const { return curves_[static_cast<int>(role)]; }
  double PredictMs(Role role, int32_t rows, int64_t new_ids) const {
    return curve(role).Predict(rows, new_ids);
  }
  const RateEstimator& routed() const { return routed_; }      // r
  const RateEstimator& returned() const { return returned_; }  // q
  const RateEstimator& acceptance_rate() const { return acceptance_rate_; }
  absl::Duration handoff_latency() const { return absl::Milliseconds(handoff_latency_ms_); }
  bool shared_device() const { return shared_device_; }
  const ServiceRates& rates() const { return mode_.rates(); }
  const std::optional<PairPlan>& plan() const { return plan_; }
  // The plan's prediction with the prompts of recent requests. REQUIRES: there is a plan.
  ModePrediction Prediction() const;
  uint64_t plans() const { return plans_; }
  absl::Duration planning_time() const { return planning_time_; }
  uint64_t mode_switches() const { return mode_.switches(); }
  // Fills in everything but the pair's name.
  void Fill(int32_t live, absl::Time now, wire::PairModel* out) const;

 private:
  bool Known() const;
  // The relative standard error of a step of all requests, of the side that is known less; infinite
  // while r is unknown.
  double Uncertainty(int32_t live) const;
  bool LoadMoved(int32_t live) const;
  bool RatesMoved() const;
  bool CurveMoved(Role role) const;
  // Takes an earlier plan for about this many requests, if there is one.
  void Recall(int32_t live);
  void FollowMode(absl::Time now);
  PromptCost CostOfPrompt(double ids, double tokens) const;
  // The mean tokens of recent requests; 0 if there was none.
  double MeanAnswer() const { return mean_generated_ > 0 ? mean_generated_ : mean_limit_; }
  // The mean prompt cost of recent requests; without tokens if there was none.
  PromptCost MeanPrompt() const;

  const PairModelOptions options_;
  StepTimeEstimator curves_[kRoles];
  RateEstimator routed_{0.1};
  RateEstimator returned_{1.0};
  RateEstimator acceptance_rate_{0.5};
  double handoff_latency_ms_ = 0;
  int64_t handoffs_seen_ = 0;
  int64_t begun_ = 0;
  double mean_uncomputed_ = 0;  // Mean uncached ids of a prompt.
  double mean_limit_ = 0;       // Mean limit of a request's tokens.
  double mean_generated_ = 0;   // Mean tokens of finished requests; 0: none yet.
  bool shared_device_ = false;
  double max_step_ms_ = 0;

  int32_t live_ = 0;  // At the last tick.
  bool planning_ = false;
  std::optional<PairPlan> plan_;
  // Plans made since rates and curves last moved, by requests: a load that comes back needs no new
  // plan.
  std::map<int32_t, PairPlan> made_;
  RetuneGate routed_gate_, returned_gate_;
  absl::Time planned_at_ = absl::InfinitePast();
  absl::Duration plan_cost_;
  uint64_t plans_ = 0;
  absl::Duration planning_time_;
  ModeChoice mode_;
};

}  // namespace tokenrouter
