// PairModel decides how the scheduler serves one pair: the batching policy in force, and whether
// routing pays at all. What workers report goes into its observations; plans are made elsewhere
// (pair_plan.h) from the inputs that Wanted returns, and come back through Adopt.
// Until the first plan every request is routed and the policy is the safe default.
// Threads: lives on the scheduler's loop. Cost: O(1) per call. Units: milliseconds.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "libs/batching_model/mode_controller.h"
#include "libs/batching_model/prompt_worth.h"
#include "libs/batching_model/simulator.h"
#include "libs/tokens/token_types.h"
#include "services/scheduler/pair_model/mode_choice.h"
#include "services/scheduler/pair_model/pair_observations.h"
#include "services/scheduler/pair_model/pair_plan.h"
#include "services/scheduler/pair_model/plan_schedule.h"

namespace tokenrouter {

struct PairModelOptions {
  // The threshold of a shared device until there is a plan, as a share of the live requests.
  double default_fraction = 0.4;
  // The model counts as unknown until r was observed in this many steps, because the first tokens
  // of an answer are not like the rest.
  double least_routed_trials = 200;
  PlanScheduleOptions plans;
  ModeChoiceOptions mode;
};

class PairModel {
 public:
  explicit PairModel(const PairModelOptions& options)
      : options_(options), plans_(options.plans, options.mode.load_step), mode_(options.mode) {}

  // ---- what is seen ----
  const PairObservations& seen() const { return seen_; }
  PairObservations& mutable_seen() { return seen_; }
  // A request wrote its first token (pair_observations.h).
  void ObserveBegun(int32_t uncomputed_ids, int32_t most_tokens);
  // Tokens of either author.
  void ObserveCommitted(int64_t tokens) { mode_.Commit(tokens); }
  // Live requests that prefill their prompt. To be called before every Wanted.
  void ObserveReading(int32_t requests) { mode_.Expect(requests, seen_.lengths().Answer()); }

  // ---- what is decided ----
  // The policy in force for `live` requests of a pair that runs under its plan.
  BatchingPolicy Policy(int32_t live) const;
  ServiceMode mode() const { return mode_.mode(); }
  const ModeChoice& mode_choice() const { return mode_; }
  // See ModeChoice.
  bool TakeProbe(absl::Time now) { return mode_.TakeProbe(now); }
  // Whether a request with such a prompt gains by being routed, according to the present plan.
  bool PromptWorthRouting(int32_t prompt_ids, int32_t most_tokens) const;

  // ---- what is planned ----
  // Follows the load, and returns the inputs of a plan that should be made (plan_schedule.h).
  std::optional<PlanInputs> Wanted(int32_t live, absl::Time now);
  void Adopt(const std::optional<PairPlan>& plan, absl::Duration cost, absl::Time now);
  const PlanSchedule& plans() const { return plans_; }
  // The plan's prediction with the prompts of recent requests. REQUIRES: there is a plan.
  ModePrediction Prediction() const;

 private:
  // The relative standard error of a step of all requests, of the side that is known less; infinite
  // while r is unknown.
  double Uncertainty(int32_t live) const;
  void FollowMode(absl::Time now);
  PromptCost CostOfPrompt(double ids, double tokens) const;
  // The mean prompt cost of recent requests; without tokens if there was none.
  PromptCost MeanPrompt() const;

  const PairModelOptions options_;
  PairObservations seen_;
  PlanSchedule plans_;
  ModeChoice mode_;
  int32_t live_ = 0;  // At the last tick.
};

}  // namespace tokenrouter
