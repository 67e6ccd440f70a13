// WorkerMetrics is what a worker counts, under tokenrouter_worker_*; every series has its role as a
// label.
// Ownership: the registry must outlive it. Threads: Observe methods belong to the engine thread;
// scrapes read prometheus-cpp's own thread-safe types.
#pragma once

#include <prometheus/registry.h>

#include <array>

#include "libs/telemetry/metrics.h"
#include "libs/worker/core/worker_core.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

class WorkerMetrics {
 public:
  WorkerMetrics(prometheus::Registry* registry, Role role);

  // After each step, with the frame that it made.
  void ObserveStep(const wire::WorkerFrame& frame);
  // Whenever the core may have changed. `total_blocks` of the engine.
  void ObserveCore(const WorkerCore& core, int64_t total_blocks);
  void CountReconnect() { reconnects_.Increment(); }

 private:
  prometheus::Counter& tokens_;
  prometheus::Counter& routed_;
  prometheus::Counter& steps_;
  prometheus::Counter& catch_up_ids_;
  prometheus::Counter& preemptions_;
  prometheus::Counter& prefix_hit_ids_;
  prometheus::Counter& prefix_lookup_ids_;
  prometheus::Counter& prefix_evictions_;
  prometheus::Counter& engine_errors_;
  prometheus::Counter& refused_;
  prometheus::Counter& need_ids_;
  prometheus::Counter& stale_frames_;
  prometheus::Counter& lease_wait_;
  std::array<prometheus::Counter*, kWaitOutcomes> deferrals_;
  prometheus::Counter& reconnects_;
  prometheus::Histogram& step_seconds_;
  prometheus::Histogram& rows_;
  prometheus::Histogram& new_ids_;
  prometheus::Histogram& entropy_;
  prometheus::Gauge& blocks_used_;
  prometheus::Gauge& blocks_free_;
  prometheus::Gauge& cached_blocks_;
  prometheus::Gauge& ready_;
  prometheus::Gauge& waiting_;
  prometheus::Gauge& held_;
  prometheus::Gauge& requests_running_;
  prometheus::Gauge& requests_waiting_;
  prometheus::Gauge& cache_usage_;
  WorkerCounters seen_;  // What the counters above already hold.
  PrefixCache::Counters cache_seen_;
};

}  // namespace tokenrouter
