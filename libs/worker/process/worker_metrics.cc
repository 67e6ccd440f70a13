#include "libs/worker/process/worker_metrics.h"

#include <utility>

namespace tokenrouter {
namespace {

std::string Name(const char* what) { return std::string("tokenrouter_worker_") + what; }

MetricLabels Labels(Role role, MetricLabels labels) {
  labels.emplace("role", RoleName(role));
  return labels;
}

prometheus::Counter& Counter(prometheus::Registry* registry, Role role, const char* what,
                             const char* help, MetricLabels labels = {}) {
  return AddCounter(registry, Name(what), help, Labels(role, std::move(labels)));
}

prometheus::Gauge& Gauge(prometheus::Registry* registry, Role role, const char* what,
                         const char* help, MetricLabels labels = {}) {
  return AddGauge(registry, Name(what), help, Labels(role, std::move(labels)));
}

prometheus::Histogram& Histogram(prometheus::Registry* registry, Role role, const char* what,
                                 const char* help,
                                 const prometheus::Histogram::BucketBoundaries& bounds) {
  return AddHistogram(registry, Name(what), help, bounds, Labels(role, {}));
}

// In nats; half of the tokens of a confident model lie below the first bound.
const prometheus::Histogram::BucketBoundaries kEntropyBuckets = {
    0.01, 0.05, 0.1, 0.2, 0.3, 0.45, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0};

}  // namespace

WorkerMetrics::WorkerMetrics(prometheus::Registry* r, Role role)
    : tokens_(Counter(r, role, "tokens_total", "Tokens committed by this worker")),
      routed_(Counter(r, role, "routed_total", "Rows that ended in a handoff to the other side")),
      steps_(Counter(r, role, "steps_total", "Steps of the engine")),
      catch_up_ids_(
          Counter(r, role, "catch_up_ids_total", "Ids computed without returning a choice")),
      preemptions_(
          Counter(r, role, "preemptions_total", "Sequences whose KV was dropped to free blocks")),
      prefix_hit_ids_(
          Counter(r, role, "prefix_hit_tokens_total", "Ids that starting requests found in KV")),
      prefix_lookup_ids_(Counter(r, role, "prefix_lookup_tokens_total",
                                 "Ids that starting requests looked for in KV")),
      prefix_evictions_(Counter(r, role, "prefix_evictions_total",
                                "Cached KV blocks of closed requests that were evicted")),
      engine_errors_(Counter(r, role, "engine_errors_total", "Steps that failed")),
      refused_(Counter(r, role, "refused_total", "Requests refused with an error")),
      need_ids_(Counter(r, role, "need_ids_total", "Extends that asked for ids again")),
      stale_frames_(Counter(r, role, "stale_frames_total", "Frames of another term")),
      lease_wait_(Counter(r, role, "lease_wait_seconds_total",
                          "Time with ready rows while another worker held the device's lease")),
      reconnects_(Counter(r, role, "reconnects_total", "Streams lost to the scheduler")),
      step_seconds_(Histogram(r, role, "step_seconds", "Time of a step", LatencyBuckets())),
      rows_(Histogram(r, role, "rows_per_step", "Rows of a step", SizeBuckets())),
      new_ids_(Histogram(r, role, "new_ids_per_step", "New ids of a step", SizeBuckets())),
      entropy_(
          Histogram(r, role, "token_entropy", "Nats, of each committed token", kEntropyBuckets)),
      blocks_used_(Gauge(r, role, "kv_blocks", "KV blocks", {{"state", "used"}})),
      blocks_free_(Gauge(r, role, "kv_blocks", "KV blocks", {{"state", "free"}})),
      cached_blocks_(Gauge(r, role, "cached_blocks",
                           "Free KV blocks that keep the prefixes of closed requests")),
      ready_(Gauge(r, role, "sequences", "Open requests", {{"state", "ready"}})),
      waiting_(Gauge(r, role, "sequences", "Open requests", {{"state", "waiting"}})),
      held_(Gauge(r, role, "sequences", "Open requests", {{"state", "held"}})),
      requests_running_(Gauge(r, role, "num_requests_running", "Requests that can run now")),
      requests_waiting_(
          Gauge(r, role, "num_requests_waiting",
                "Requests that hold the decode grant and wait for release or credit")),
      cache_usage_(Gauge(r, role, "kv_cache_usage_perc", "Used share of the KV blocks, 0 to 1")) {
  for (int i = 0; i < kWaitOutcomes; ++i) {
    deferrals_[i] =
        &Counter(r, role, "deferrals_total", "Steps, by the reason why their rows stopped waiting",
                 {{"outcome", kWaitOutcomeNames[i]}});
  }
}

void WorkerMetrics::ObserveStep(const wire::WorkerFrame& frame) {
  step_seconds_.Observe(static_cast<double>(frame.step().elapsed_us()) / 1e6);
  rows_.Observe(frame.step().rows());
  new_ids_.Observe(static_cast<double>(frame.step().new_ids()));
  for (const wire::RowReport& row : frame.rows()) {
    for (const float entropy : row.entropies()) entropy_.Observe(entropy);
  }
}

void WorkerMetrics::ObserveCore(const WorkerCore& core, int64_t total_blocks) {
  const WorkerCounters& now = core.counters();
  const auto add = [](prometheus::Counter& counter, uint64_t after, uint64_t before) {
    if (after > before) counter.Increment(static_cast<double>(after - before));
  };
  add(tokens_, now.committed, seen_.committed);
  add(routed_, now.handoffs, seen_.handoffs);
  add(steps_, now.steps, seen_.steps);
  add(catch_up_ids_, now.catch_up_ids, seen_.catch_up_ids);
  add(preemptions_, now.preemptions, seen_.preemptions);
  add(engine_errors_, now.engine_errors, seen_.engine_errors);
  add(refused_, now.refused, seen_.refused);
  add(need_ids_, now.need_ids, seen_.need_ids);
  add(stale_frames_, now.stale_frames, seen_.stale_frames);
  const PrefixCache::Counters& cache = core.store().cache().counters();
  add(prefix_hit_ids_, cache.hit_ids, cache_seen_.hit_ids);
  add(prefix_lookup_ids_, cache.lookup_ids, cache_seen_.lookup_ids);
  add(prefix_evictions_, cache.evictions, cache_seen_.evictions);
  cache_seen_ = cache;
  for (int i = 0; i < kWaitOutcomes; ++i) {
    add(*deferrals_[i], now.deferrals[i], seen_.deferrals[i]);
  }
  lease_wait_.Increment(absl::ToDoubleSeconds(now.lease_wait - seen_.lease_wait));
  seen_ = now;
  const int64_t free = core.store().free_blocks();
  blocks_free_.Set(static_cast<double>(free));
  cached_blocks_.Set(static_cast<double>(core.store().cache().cached_blocks()));
  blocks_used_.Set(static_cast<double>(total_blocks - free));
  cache_usage_.Set(total_blocks == 0 ? 0 : 1 - static_cast<double>(free) / total_blocks);
  const int32_t ready = core.store().Ready(), waiting = core.store().Waiting();
  ready_.Set(ready);
  waiting_.Set(waiting);
  held_.Set(static_cast<double>(core.store().size()) - ready - waiting);
  requests_running_.Set(ready);
  requests_waiting_.Set(waiting);
}

}  // namespace tokenrouter
