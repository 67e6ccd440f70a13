#include "services/scheduler/pair_model/pair_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "libs/batching_model/policy_name.h"

namespace tokenrouter {
namespace {

// The weight of a new observation in the handoff latency and the mean lengths: about the last
// fifty.
constexpr double kFollow = 0.02;
// A curve is unknown before this many observations.
constexpr int64_t kLeastObservations = 3;
constexpr size_t kMostPlansKept = 64;

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

void Follow(double value, int64_t seen, double* mean) {
  *mean += (value - *mean) * std::max(kFollow, 1.0 / static_cast<double>(seen));
}

bool Differs(double now, double then, double share) { return std::abs(now - then) > share * then; }

void FillCurve(const StepTimeEstimator& curve, int32_t live, wire::StepCurve* out) {
  out->set_base_ms(curve.coefficients().base_ms);
  out->set_row_ms(curve.coefficients().row_ms);
  out->set_id_ms(curve.coefficients().id_ms);
  for (const double bend_ms : curve.coefficients().bend_ms) out->add_bend_ms(bend_ms);
  out->set_spread(curve.RelativeSpread());
  out->set_drift(curve.Drift());
  out->set_observations(curve.observations());
  // The uncertainty is infinite without a step.
  const int32_t rows = std::max(1, live);
  if (curve.observations() > 0) out->set_uncertainty(curve.Uncertainty(rows, rows));
}

void FillProbability(const RateEstimator& rate, wire::Probability* out) {
  out->set_mean(rate.mean());
  out->set_lower(rate.Lower());
  out->set_upper(rate.Upper());
  out->set_trials(rate.effective_trials());
}

}  // namespace

void PairModel::ObserveStep(Role role, int32_t rows, int64_t new_ids, absl::Duration elapsed) {
  if (rows <= 0 || new_ids <= 0) return;
  curves_[static_cast<int>(role)].Observe(rows, new_ids, Milliseconds(elapsed));
}

void PairModel::ObserveRows(Role role, int64_t steps, int64_t handoffs) {
  (role == Role::kSmall ? routed_ : returned_).Observe(std::max(steps, handoffs), handoffs);
}

void PairModel::ObserveHandoff(absl::Duration latency) {
  Follow(std::max(0.0, Milliseconds(latency)), ++handoffs_seen_, &handoff_latency_ms_);
}

void PairModel::ObserveBegun(int32_t uncomputed_ids, int32_t most_tokens) {
  Follow(uncomputed_ids, ++begun_, &mean_uncomputed_);
  Follow(most_tokens, begun_, &mean_limit_);
  mode_.Begin();
}

void PairModel::ObserveFinished(int32_t generated) {
  if (mean_generated_ == 0) mean_generated_ = generated;
  Follow(generated, 1 / kFollow, &mean_generated_);
}

BatchingPolicy PairModel::Policy(int32_t live) const {
  const int32_t requests = std::max(1, live);
  if (!plan_) {
    if (!shared_device_) return {};
    return {
        .kind = BatchingPolicy::Kind::kModel,
        .m_large = std::max(1, static_cast<int>(std::ceil(options_.default_fraction * requests)))};
  }
  BatchingPolicy policy = plan_->prediction.policy;
  // The best thresholds grow with the requests (batching model, section 5c).
  for (int* const threshold : {&policy.m_small, &policy.m_large}) {
    const double share = static_cast<double>(*threshold) / plan_->inputs.requests;
    *threshold = std::clamp(static_cast<int>(std::lround(share * requests)), 1, requests);
  }
  return policy;
}

bool PairModel::PromptWorthRouting(int32_t prompt_ids, int32_t most_tokens) const {
  if (!plan_ || prompt_ids <= 0 || !mode_.Sure(Uncertainty(plan_->inputs.requests))) return true;
  const double tokens = mean_generated_ > 0 ? std::min<double>(mean_generated_, most_tokens)
                                            : static_cast<double>(most_tokens);
  return RoutingSavesMs(rates().Correct(Prediction(), plan_->inputs.requests),
                        CostOfPrompt(prompt_ids, tokens), MeanPrompt()) > 0;
}

PromptCost PairModel::CostOfPrompt(double ids, double tokens) const {
  const auto read_ms = [&](Role role) {
    return ids > 0 ? PredictMs(role, 1, static_cast<int64_t>(ids)) : 0.0;
  };
  return {.small_prefill_ms = read_ms(Role::kSmall),
          .large_prefill_ms = read_ms(Role::kLarge),
          .expected_tokens = tokens,
          .r = plan_->inputs.r,
          .shared_device = plan_->inputs.shared_device};
}

PromptCost PairModel::MeanPrompt() const { return CostOfPrompt(mean_uncomputed_, MeanAnswer()); }

ModePrediction PairModel::Prediction() const {
  return WithPrompts(plan_->prediction, MeanPrompt());
}

bool PairModel::Known() const {
  return curves_[0].observations() >= kLeastObservations &&
         curves_[1].observations() >= kLeastObservations;
}

bool PairModel::CurveMoved(Role role) const {
  const int index = static_cast<int>(role);
  const StepCost planned = CostOf(plan_->inputs.curves[index]);
  const int rows = std::max(1, plan_->inputs.requests);
  return Differs(PredictMs(role, rows, rows), planned(rows, rows), options_.curve_step) ||
         Differs(PredictMs(role, 1, 1), planned(1, 1), options_.curve_step);
}

double PairModel::Uncertainty(int32_t live) const {
  if (routed_.effective_trials() < options_.least_routed_trials) {
    return std::numeric_limits<double>::infinity();
  }
  return std::max(curves_[0].Uncertainty(live, live), curves_[1].Uncertainty(live, live));
}

bool PairModel::LoadMoved(int32_t live) const {
  return Differs(live, plan_->inputs.requests, options_.mode.load_step);
}

bool PairModel::RatesMoved() const {
  return routed_gate_.Moved(routed_) || returned_gate_.Moved(returned_) ||
         CurveMoved(Role::kSmall) || CurveMoved(Role::kLarge) ||
         plan_->inputs.shared_device != shared_device_ || plan_->inputs.max_step_ms != max_step_ms_;
}

void PairModel::Recall(int32_t live) {
  auto best = made_.end();
  for (auto it = made_.begin(); it != made_.end(); ++it) {
    if (Differs(live, it->first, options_.mode.load_step)) continue;
    if (best == made_.end() || std::abs(it->first - live) < std::abs(best->first - live)) best = it;
  }
  if (best != made_.end()) plan_ = best->second;
}

std::optional<PlanInputs> PairModel::Wanted(int32_t live, absl::Time now) {
  live_ = live;
  if (plan_ && live > 0 && LoadMoved(live)) Recall(live);
  FollowMode(now);
  if (live <= 0 || !Known()) return std::nullopt;
  if (planning_) return std::nullopt;
  const absl::Duration pause =
      std::max(options_.least_plan_interval, plan_cost_ / options_.most_plan_share);
  if (now - planned_at_ < pause) return std::nullopt;
  const bool holds =
      plan_ && !LoadMoved(live) && !RatesMoved() && now - planned_at_ < options_.most_plan_age;
  if (holds) return std::nullopt;
  planning_ = true;
  // Cleared here, not when the plan comes back, because rates move while it is made.
  if (!plan_ || RatesMoved()) made_.clear();
  routed_gate_.Planned(routed_);
  returned_gate_.Planned(returned_);
  PlanInputs inputs{.requests = live,
                    .spread = std::max(curves_[0].RelativeSpread(), curves_[1].RelativeSpread()),
                    .r = routed_.mean(),
                    .q = returned_.mean(),
                    .handoff_latency_ms = handoff_latency_ms_,
                    .max_step_ms = max_step_ms_,
                    .shared_device = shared_device_};
  for (int role = 0; role < kRoles; ++role) inputs.curves[role] = curves_[role].coefficients();
  return inputs;
}

void PairModel::Adopt(const std::optional<PairPlan>& plan, absl::Duration cost, absl::Time now) {
  planning_ = false;
  planned_at_ = now;
  plan_cost_ = cost;
  planning_time_ += cost;
  ++plans_;
  if (!plan) return;
  if (made_.size() >= kMostPlansKept) made_.clear();
  plan_ = plan;
  made_[plan->inputs.requests] = *plan;
  FollowMode(now);
}

void PairModel::FollowMode(absl::Time now) {
  // A prediction for another load does not apply to this one; a new plan is on its way.
  const bool fits = plan_ && !LoadMoved(live_);
  const PlannedLoad load = fits ? PlannedLoad{plan_->inputs.requests, Prediction()} : PlannedLoad{};
  mode_.Follow(live_, load, Uncertainty(live_), now);
}

void PairModel::Fill(int32_t live, absl::Time now, wire::PairModel* out) const {
  FillCurve(curves_[0], live, out->mutable_small());
  FillCurve(curves_[1], live, out->mutable_large());
  FillProbability(routed_, out->mutable_routed());
  FillProbability(returned_, out->mutable_returned());
  FillProbability(acceptance_rate_, out->mutable_acceptance_rate());
  out->set_handoff_latency_ms(handoff_latency_ms_);
  out->set_live(live);
  out->set_mean_uncomputed_prompt(mean_uncomputed_);
  out->set_mean_generated(mean_generated_);
  out->set_routed_measured_per_s(rates().Measured(ServiceMode::kRouted, live).value_or(0));
  out->set_large_alone_measured_per_s(rates().Measured(ServiceMode::kLargeAlone, live).value_or(0));
  out->set_routed_measured_ms_per_token(
      rates().MeasuredMsPerToken(ServiceMode::kRouted, live).value_or(0));
  out->set_large_alone_measured_ms_per_token(
      rates().MeasuredMsPerToken(ServiceMode::kLargeAlone, live).value_or(0));
  out->set_policy(DescribePolicy(Policy(live), shared_device_));
  out->set_service_mode(mode() == ServiceMode::kRouted ? "routed" : "large_alone");
  if (!plan_) return;
  const ModePrediction prediction = Prediction();
  wire::PairPlan* const plan = out->mutable_plan();
  plan->set_requests(plan_->inputs.requests);
  plan->set_age_seconds(absl::ToDoubleSeconds(now - planned_at_));
  plan->set_cost_ms(Milliseconds(plan_cost_));
  plan->set_routed_per_s(prediction.routed_per_s);
  plan->set_large_alone_per_s(prediction.large_alone_per_s);
  plan->set_routed_ms_per_token(prediction.routed_ms_per_token);
  plan->set_large_alone_ms_per_token(prediction.large_alone_ms_per_token);
}

}  // namespace tokenrouter
