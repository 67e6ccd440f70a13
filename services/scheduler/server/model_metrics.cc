#include "services/scheduler/server/model_metrics.h"

#include <utility>

namespace tokenrouter {
namespace {

constexpr char kPrefix[] = "tokenrouter_scheduler_";
constexpr double kSecondsPerMs = 1e-3;

}  // namespace

void ModelMetrics::Publish(int pair, const std::string& name, const PairModel& model,
                           int32_t live) {
  if (static_cast<size_t>(pair) >= pairs_.size()) pairs_.push_back(MetricsOf(name));
  Metrics& metrics = pairs_[static_cast<size_t>(pair)];
  for (const Number& number : metrics.numbers) number.gauge->Set(number.read({model, live}));
  for (Total& total : metrics.totals) {
    const double now = total.read(model);
    total.counter->Increment(now - total.published);
    total.published = now;
  }
}

ModelMetrics::Metrics ModelMetrics::MetricsOf(const std::string& pair) {
  Metrics metrics;
  AddCurve(pair, Role::kSmall, &metrics);
  AddCurve(pair, Role::kLarge, &metrics);
  AddRates(pair, &metrics);
  AddPlan(pair, &metrics);
  return metrics;
}

void ModelMetrics::AddCurve(const std::string& pair, Role role, Metrics* metrics) {
  const auto add = [&](const char* name, const char* help, auto read) {
    metrics->numbers.push_back(
        {&AddGauge(registry_, std::string(kPrefix) + name, help,
                   {{"pair", pair}, {"role", RoleName(role)}}),
         [role, read](const Reading& reading) { return read(reading.model.seen().curve(role)); }});
  };
  add("model_step_base_seconds", "Estimated fixed time of a step",
      [](const StepTimeEstimator& c) { return c.coefficients().base_ms * kSecondsPerMs; });
  add("model_step_row_seconds", "Estimated time of a step per row",
      [](const StepTimeEstimator& c) { return c.coefficients().row_ms * kSecondsPerMs; });
  add("model_step_id_seconds", "Estimated time of a step per new id",
      [](const StepTimeEstimator& c) { return c.coefficients().id_ms * kSecondsPerMs; });
  add("model_step_late_id_seconds", "Estimated time of a step per new id in steps of many ids",
      [](const StepTimeEstimator& c) { return c.coefficients().LateIdMs() * kSecondsPerMs; });
  add("model_step_spread_ratio", "Relative standard deviation of step times around the estimate",
      [](const StepTimeEstimator& c) { return c.RelativeSpread(); });
}

void ModelMetrics::AddRates(const std::string& pair, Metrics* metrics) {
  const auto add = [&](const char* name, const char* help,
                       const RateEstimator& (PairObservations::*rate)() const) {
    const auto bound = [&](const char* which, double (RateEstimator::*read)() const) {
      metrics->numbers.push_back({&AddGauge(registry_, std::string(kPrefix) + name, help,
                                            {{"pair", pair}, {"bound", which}}),
                                  [rate, read](const Reading& reading) {
                                    return ((reading.model.seen().*rate)().*read)();
                                  }});
    };
    bound("mean", &RateEstimator::mean);
    bound("lower", &RateEstimator::Lower);
    bound("upper", &RateEstimator::Upper);
  };
  add("model_routed_ratio", "r: share of small rows that hand off to the large side",
      &PairObservations::routed);
  add("model_returned_ratio", "q: share of large rows that hand off to the small side",
      &PairObservations::returned);
  add("model_acceptance_ratio", "Share of verified tentative tokens that were accepted",
      &PairObservations::acceptance_rate);
}

void ModelMetrics::AddPlan(const std::string& pair, Metrics* metrics) {
  const auto add = [&](const char* name, const char* help, MetricLabels labels, auto read) {
    labels["pair"] = pair;
    metrics->numbers.push_back(
        {&AddGauge(registry_, std::string(kPrefix) + name, help, labels), read});
  };
  add("model_handoff_latency_seconds",
      "From the end of a step on one side until its row can run on the other", {},
      [](const Reading& r) { return absl::ToDoubleSeconds(r.model.seen().handoff_latency()); });
  add("model_large_alone", "1 while new requests get large-only service", {},
      [](const Reading& r) { return r.model.mode() == ServiceMode::kLargeAlone ? 1.0 : 0.0; });
  add("model_threshold_rows", "Large rows that a shared device or a static plan waits for", {},
      [](const Reading& r) { return r.model.Policy(r.live).m_large; });
  const auto by_mode = [&](const char* name, const char* help, auto read) {
    for (const auto& [label, mode] : {std::pair("routed", ServiceMode::kRouted),
                                      std::pair("large_alone", ServiceMode::kLargeAlone)}) {
      add(name, help, {{"mode", label}}, [read, mode](const Reading& r) { return read(r, mode); });
    }
  };
  by_mode("model_predicted_tokens_per_second",
          "Predicted by the last plan, with the prompts of recent requests",
          [](const Reading& r, ServiceMode mode) {
            if (!r.model.plans().plan()) return 0.0;
            const ModePrediction prediction = r.model.Prediction();
            return mode == ServiceMode::kRouted ? prediction.routed_per_s
                                                : prediction.large_alone_per_s;
          });
  by_mode("model_measured_tokens_per_second", "Measured at a load like the present one; 0: not yet",
          [](const Reading& r, ServiceMode mode) {
            return r.model.mode_choice().rates().Measured(mode, r.live).value_or(0);
          });
  const auto count = [&](const char* name, const char* help, auto read) {
    metrics->totals.push_back(
        {&AddCounter(registry_, std::string(kPrefix) + name, help, {{"pair", pair}}), read});
  };
  count("plans_total", "Plans made in the background",
        [](const PairModel& m) { return static_cast<double>(m.plans().made()); });
  count("plan_cpu_seconds_total", "Processor time spent on plans",
        [](const PairModel& m) { return absl::ToDoubleSeconds(m.plans().planning_time()); });
  count("mode_switches_total", "Changes between routed and large-only service",
        [](const PairModel& m) { return static_cast<double>(m.mode_choice().switches()); });
}

}  // namespace tokenrouter
