// The scheduler's metrics, tokenrouter_scheduler_*. Counters follow those of the core by their
// differences; gauges are read from it.
// Ownership: the registry must outlive it. Threads: lives on the scheduler's loop; the registry may
// be scraped from any thread.
#pragma once

#include <functional>
#include <vector>

#include "libs/telemetry/metrics.h"
#include "services/scheduler/core/scheduler_core.h"
#include "services/scheduler/server/model_metrics.h"

namespace tokenrouter {

class SchedulerMetrics {
 public:
  explicit SchedulerMetrics(prometheus::Registry* registry);

  // Updates all metrics; cheap enough for a few calls a second.
  void Publish(const SchedulerCore& core, absl::Time now);
  void ObserveFrame(absl::Duration handled_in) {
    frame_seconds_->Observe(absl::ToDoubleSeconds(handled_in));
  }

 private:
  // A metric and the function that reads its value from SchedulerCounters.
  struct Follower {
    prometheus::Counter* counter = nullptr;
    std::function<uint64_t(const SchedulerCounters&)> read;
    uint64_t published = 0;
  };

  void Follow(const std::string& name, const std::string& help, const MetricLabels& labels,
              std::function<uint64_t(const SchedulerCounters&)> read);
  void FollowTokens();
  void FollowRequests();
  void FollowLeases();
  void PublishLargeKv(const SchedulerCore& core);

  prometheus::Registry* const registry_;
  std::vector<Follower> followers_;
  ModelMetrics models_;
  prometheus::Gauge* workers_[kRoles];
  prometheus::Gauge* requests_[kPhases];
  prometheus::Gauge* gateways_;
  prometheus::Gauge* oldest_large_wait_;
  // KV of the whole large pool; GetState shows it per worker.
  prometheus::Gauge* large_blocks_;
  prometheus::Gauge* resident_blocks_;
  prometheus::Gauge* resident_sequences_;
  prometheus::Gauge* waiting_for_large_kv_;
  prometheus::Histogram* frame_seconds_;
};

}  // namespace tokenrouter
