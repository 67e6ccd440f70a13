// PairModel is what the scheduler has learned about one pair while serving it, and what it makes of
// it: how long steps take, how often requests change sides, the batching policy in force, and
// whether routing pays at all. Workers' reports go in; decisions are read; plans are made elsewhere
// (pair_plan.h) from inputs that Wanted gives, and come back through Adopt.
// Until the first plan everything is routed and the policy is the safe default.
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
  // Share of the live requests that is the threshold of a shared device until there is a plan.
  double default_fraction = 0.4;
  // Plans are made at most so often, and at most this share of the time is spent on making them.
  absl::Duration least_plan_interval = absl::Milliseconds(250);
  double most_plan_share = 0.05;
  // A plan is made anew when the load is another one (mode.load_step), a curve has moved by this
  // share, or it is older than the next.
  double curve_step = 0.1;
  absl::Duration most_plan_age = absl::Seconds(30);
  // Nothing is known while r was seen in fewer steps: the first tokens of an answer are not like
  // the rest.
  double least_routed_trials = 200;
  ModeChoiceOptions mode;
};

class PairModel {
 public:
  explicit PairModel(const PairModelOptions& options) : options_(options), mode_(options.mode) {}

  // ---- learning ----
  void ObserveStep(Role role, int32_t rows, int64_t new_ids, absl::Duration elapsed);
  // Steps of single rows after which the algorithm might have handed over, and how often it did.
  void ObserveRows(Role role, int64_t steps, int64_t handoffs);
  void ObserveVerified(int64_t tokens, int64_t kept) { agreement_.Observe(tokens, kept); }
  void ObserveHandoff(absl::Duration hop);
  // A request whose first token came: the ids of its prompt that were in no cache, and the tokens
  // that it may write.
  void ObserveBegun(int32_t unread_ids, int32_t most_tokens);
  void ObserveFinished(int32_t generated);
  // Whoever wrote them.
  void ObserveCommitted(int64_t tokens) { mode_.Commit(tokens); }
  // Live requests that read their prompt, before every Wanted.
  void ObserveReading(int32_t requests) { mode_.Expect(requests, MeanAnswer()); }

  // ---- deciding ----
  // In force for so many requests of a pair that runs under its plan.
  BatchingPolicy Policy(int32_t live) const;
  ServiceMode mode() const { return mode_.mode(); }
  // See ModeChoice.
  bool TakeProbe(absl::Time now) { return mode_.TakeProbe(now); }
  // Whether a request with such a prompt gains by being routed, by the present plan.
  bool PromptWorthRouting(int32_t prompt_ids, int32_t most_tokens) const;

  // ---- planning ----
  // Whether both sides take turns on one device, and how long the workers let a step be.
  void SetTopology(bool shared_device, absl::Duration max_step) {
    shared_device_ = shared_device;
    const bool limited = max_step < absl::InfiniteDuration();
    max_step_ms_ = limited ? absl::ToDoubleMilliseconds(max_step) : 0;
  }
  // Follows the load, and says when a plan should be made; nothing while the last one holds, or one
  // is being made.
  std::optional<PlanInputs> Wanted(int32_t live, absl::Time now);
  // `cost`: what making it took. A plan that failed is one without a value.
  void Adopt(const std::optional<PairPlan>& plan, absl::Duration cost, absl::Time now);

  // ---- reading ----
  const StepTimeEstimator& curve(Role role) const { return curves_[static_cast<int>(role)]; }
  double PredictMs(Role role, int32_t rows, int64_t new_ids) const {
    return curve(role).Predict(rows, new_ids);
  }
  const RateEstimator& routed() const { return routed_; }      // r
  const RateEstimator& returned() const { return returned_; }  // q
  const RateEstimator& acceptance_rate() const { return agreement_; }
  absl::Duration hop() const { return absl::Milliseconds(hop_ms_); }
  bool shared_device() const { return shared_device_; }
  const ServiceRates& rates() const { return mode_.rates(); }
  const std::optional<PairPlan>& plan() const { return plan_; }
  // Of the plan, with the prompts of the requests seen lately. REQUIRES: there is a plan.
  ModePrediction Prediction() const;
  uint64_t plans() const { return plans_; }
  absl::Duration planning_time() const { return planning_time_; }
  uint64_t mode_switches() const { return mode_.switches(); }
  // Everything but the pair's name.
  void Fill(int32_t live, absl::Time now, wire::PairModel* out) const;

 private:
  bool Known() const;
  // Relative standard error of a step of all requests, of the side known less; infinite without r.
  double Uncertainty(int32_t live) const;
  bool LoadMoved(int32_t live) const;
  bool RatesMoved() const;
  bool CurveMoved(Role role) const;
  // Takes an earlier plan for about so many requests, if there is one.
  void Recall(int32_t live);
  void FollowMode(absl::Time now);
  PromptCost CostOfPrompt(double ids, double tokens) const;
  // Tokens of a request such as were seen lately; 0 if none was.
  double MeanAnswer() const { return mean_generated_ > 0 ? mean_generated_ : mean_limit_; }
  // Of a request such as were seen lately; without tokens if none was.
  PromptCost MeanPrompt() const;

  const PairModelOptions options_;
  StepTimeEstimator curves_[kRoles];
  RateEstimator routed_{0.1};
  RateEstimator returned_{1.0};
  RateEstimator agreement_{0.5};
  double hop_ms_ = 0;
  int64_t hops_ = 0;
  int64_t begun_ = 0;
  double mean_unread_ = 0;     // Ids of a prompt.
  double mean_limit_ = 0;      // Tokens that a request may write.
  double mean_generated_ = 0;  // Of finished requests; 0: none yet.
  bool shared_device_ = false;
  double max_step_ms_ = 0;

  int32_t live_ = 0;  // At the last tick.
  bool planning_ = false;
  std::optional<PairPlan> plan_;
  // Made since rates and curves moved last, by requests: a load that comes back needs no new one.
  std::map<int32_t, PairPlan> made_;
  RetuneGate routed_gate_, returned_gate_;
  absl::Time planned_at_ = absl::InfinitePast();
  absl::Duration plan_cost_;
  uint64_t plans_ = 0;
  absl::Duration planning_time_;
  ModeChoice mode_;
};

}  // namespace tokenrouter
