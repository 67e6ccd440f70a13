#include "services/scheduler/pair_model/pair_report.h"

#include <algorithm>

#include "libs/batching_model/policy_name.h"

namespace tokenrouter {
namespace {

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

void FillObservations(const PairObservations& seen, int32_t live, wire::PairModel* out) {
  FillCurve(seen.curve(Role::kSmall), live, out->mutable_small());
  FillCurve(seen.curve(Role::kLarge), live, out->mutable_large());
  FillProbability(seen.routed(), out->mutable_routed());
  FillProbability(seen.returned(), out->mutable_returned());
  FillProbability(seen.acceptance_rate(), out->mutable_acceptance_rate());
  out->set_handoff_latency_ms(absl::ToDoubleMilliseconds(seen.handoff_latency()));
  out->set_mean_uncomputed_prompt(seen.lengths().uncomputed);
  out->set_mean_generated(seen.lengths().generated);
}

void FillPlan(const PairModel& model, absl::Time now, wire::PairPlan* out) {
  const ModePrediction prediction = model.Prediction();
  out->set_requests(model.plans().plan()->inputs.requests);
  out->set_age_seconds(absl::ToDoubleSeconds(now - model.plans().planned_at()));
  out->set_cost_ms(absl::ToDoubleMilliseconds(model.plans().last_cost()));
  out->set_routed_per_s(prediction.routed_per_s);
  out->set_large_alone_per_s(prediction.large_alone_per_s);
  out->set_routed_ms_per_token(prediction.routed_ms_per_token);
  out->set_large_alone_ms_per_token(prediction.large_alone_ms_per_token);
}

}  // namespace

void FillPairModel(const PairModel& model, int32_t live, absl::Time now, wire::PairModel* out) {
  FillObservations(model.seen(), live, out);
  out->set_live(live);
  const ServiceRates& rates = model.mode_choice().rates();
  out->set_routed_measured_per_s(rates.Measured(ServiceMode::kRouted, live).value_or(0));
  out->set_large_alone_measured_per_s(rates.Measured(ServiceMode::kLargeAlone, live).value_or(0));
  out->set_routed_measured_ms_per_token(
      rates.MeasuredMsPerToken(ServiceMode::kRouted, live).value_or(0));
  out->set_large_alone_measured_ms_per_token(
      rates.MeasuredMsPerToken(ServiceMode::kLargeAlone, live).value_or(0));
  out->set_policy(DescribePolicy(model.Policy(live), model.seen().topology().shared_device));
  out->set_service_mode(model.mode() == ServiceMode::kRouted ? "routed" : "large_alone");
  if (model.plans().plan()) FillPlan(model, now, out->mutable_plan());
}

}  // namespace tokenrouter
