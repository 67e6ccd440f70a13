// The estimates of every pair's model as tokenrouter_scheduler_model_*: one gauge per number of
// PairModel, labelled with the pair.
// Ownership: the registry must outlive it. Threads: lives on the scheduler's loop; the registry may
// be scraped from any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libs/telemetry/metrics.h"
#include "services/scheduler/pair_model/pair_model.h"

namespace tokenrouter {

class ModelMetrics {
 public:
  explicit ModelMetrics(prometheus::Registry* registry) : registry_(registry) {}

  // Pairs are numbered from 0; the first calls must come in that order.
  void Publish(int pair, const std::string& name, const PairModel& model, int32_t live);

 private:
  struct Reading {
    const PairModel& model;
    int32_t live;
  };
  struct Number {
    prometheus::Gauge* gauge;
    std::function<double(const Reading&)> read;
  };
  struct Total {
    prometheus::Counter* counter;
    std::function<double(const PairModel&)> read;
    double published = 0;
  };
  struct Metrics {
    std::vector<Number> numbers;
    std::vector<Total> totals;
  };

  Metrics MetricsOf(const std::string& pair);
  void AddCurve(const std::string& pair, Role role, Metrics* metrics);
  void AddRates(const std::string& pair, Metrics* metrics);
  void AddPlan(const std::string& pair, Metrics* metrics);

  prometheus::Registry* const registry_;
  std::vector<Metrics> pairs_;
};

}  // namespace tokenrouter
