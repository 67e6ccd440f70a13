#include "services/scheduler/server/scheduler_metrics.h"

#include <utility>

namespace tokenrouter {
namespace {

constexpr char kPrefix[] = "tokenrouter_scheduler_";

// From 1 microsecond to 0.1 s: handling a frame takes microseconds unless the loop is starved.
const prometheus::Histogram::BucketBoundaries& FrameBuckets() {
  static const auto* const buckets = new prometheus::Histogram::BucketBoundaries{
      1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2, 1e-1};
  return *buckets;
}

}  // namespace

SchedulerMetrics::SchedulerMetrics(prometheus::Registry* registry)
    : registry_(registry), models_(registry) {
  FollowTokens();
  FollowRequests();
  FollowLeases();
  const std::string prefix = kPrefix;
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    workers_[Index(role)] =
        &AddGauge(registry, prefix + "workers", "Attached workers", {{"role", RoleName(role)}});
  }
  for (int phase = 0; phase < static_cast<int>(Phase::kEnded); ++phase) {
    requests_[phase] =
        &AddGauge(registry, prefix + "requests", "Live requests", {{"phase", kPhaseNames[phase]}});
  }
  gateways_ = &AddGauge(registry, prefix + "gateways", "Connected gateways");
  oldest_large_wait_ =
      &AddGauge(registry, prefix + "large_queue_oldest_age_seconds",
                "Age of the oldest decode grant that waits for a large worker or for its release");
  large_blocks_ = &AddGauge(registry, prefix + "large_kv_blocks", "KV blocks of the large workers");
  resident_blocks_ = &AddGauge(registry, prefix + "large_resident_blocks",
                               "KV blocks reserved on the large workers");
  resident_sequences_ = &AddGauge(registry, prefix + "large_resident_sequences",
                                  "Requests with a KV reservation on a large worker");
  waiting_for_large_kv_ = &AddGauge(registry, prefix + "large_kv_waiting",
                                    "Decode grants that wait for KV on a large worker");
  frame_seconds_ = &AddHistogram(registry, prefix + "frame_seconds",
                                 "Time to handle one incoming frame", FrameBuckets());
}

void SchedulerMetrics::Follow(const std::string& name, const std::string& help,
                              const MetricLabels& labels,
                              std::function<uint64_t(const SchedulerCounters&)> read) {
  prometheus::Counter& counter = AddCounter(registry_, kPrefix + name, help, labels);
  followers_.push_back({&counter, std::move(read)});
}

void SchedulerMetrics::FollowTokens() {
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    const size_t author = Index(AuthorOf(role));
    Follow("tokens_total", "Committed tokens", {{"author", RoleName(role)}},
           [author](const SchedulerCounters& c) { return c.tokens[author]; });
    Follow("overrun_tokens_total", "Committed tokens beyond the end of their request",
           {{"author", RoleName(role)}},
           [author](const SchedulerCounters& c) { return c.overrun_tokens[author]; });
    const size_t to = Index(role);
    Follow("handoffs_total", "Handoffs of decode grants to this side", {{"to", RoleName(role)}},
           [to](const SchedulerCounters& c) { return c.handoffs[to]; });
  }
}

void SchedulerMetrics::FollowRequests() {
  for (size_t i = 0; i < kRejectReasons; ++i) {
    Follow("rejected_total", "Requests refused or given up", {{"reason", kRejectReasonNames[i]}},
           [i](const SchedulerCounters& c) { return c.rejected[i]; });
  }
  for (size_t i = 0; i < kDropReasons; ++i) {
    Follow("dropped_rows_total", "Messages that were not applied",
           {{"reason", kDropReasonNames[i]}},
           [i](const SchedulerCounters& c) { return c.dropped[i]; });
  }
  Follow("large_alone_requests_total", "Requests admitted to large-only service", {},
         [](const SchedulerCounters& c) { return c.large_alone_requests; });
  for (size_t i = 0; i < kEvictionNeeds; ++i) {
    Follow("evictions_total", "Large sides evicted to free KV or a slot",
           {{"need", kEvictionNeedNames[i]}},
           [i](const SchedulerCounters& c) { return c.evicted[i]; });
  }
  Follow("rebuilt_ids_total", "Ids sent again to large workers after an eviction", {},
         [](const SchedulerCounters& c) { return c.rebuilt_ids; });
  Follow("background_opens_total", "Large sides opened before their first decode grant", {},
         [](const SchedulerCounters& c) { return c.background_opens; });
  Follow("forwarded_ids_total", "Ids sent to large workers between decode grants", {},
         [](const SchedulerCounters& c) { return c.forwarded_ids; });
  Follow("finished_total", "Requests that ended with a finish reason", {},
         [](const SchedulerCounters& c) { return c.finished; });
  Follow("frames_in_total", "Frames received", {},
         [](const SchedulerCounters& c) { return c.frames_in; });
  Follow("frames_out_total", "Frames sent", {},
         [](const SchedulerCounters& c) { return c.frames_out; });
}

void SchedulerMetrics::FollowLeases() {
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    const size_t r = Index(role);
    for (size_t i = 0; i < kReopenCauses; ++i) {
      Follow("reopened_total", "Sides of requests opened again",
             {{"role", RoleName(role)}, {"cause", kReopenCauseNames[i]}},
             [r, i](const SchedulerCounters& c) { return c.reopened[r][i]; });
    }
    for (size_t i = 0; i < kLeaseOutcomes; ++i) {
      Follow("leases_total", "Leases on shared devices that ended",
             {{"role", RoleName(role)}, {"outcome", kLeaseOutcomeNames[i]}},
             [r, i](const SchedulerCounters& c) { return c.leases[r][i]; });
    }
    for (size_t i = 0; i < kWaitOutcomes; ++i) {
      Follow("deferrals_total", "Waits for a fuller batch that ended, by what ended them",
             {{"role", RoleName(role)}, {"outcome", kWaitOutcomeNames[i]}},
             [r, i](const SchedulerCounters& c) { return c.deferrals[r][i]; });
    }
  }
}

void SchedulerMetrics::PublishLargeKv(const SchedulerCore& core) {
  int64_t total = 0, resident = 0, sequences = 0;
  for (const auto& [stream, worker] : core.directory().workers()) {
    total += worker->kv.total_blocks();
    resident += worker->kv.blocks_in_use();
    sequences += worker->kv.size();
  }
  large_blocks_->Set(static_cast<double>(total));
  resident_blocks_->Set(static_cast<double>(resident));
  resident_sequences_->Set(static_cast<double>(sequences));
  waiting_for_large_kv_->Set(static_cast<double>(core.large_waiting()));
}

void SchedulerMetrics::Publish(const SchedulerCore& core, absl::Time now) {
  for (Follower& follower : followers_) {
    const uint64_t value = follower.read(core.counters());
    if (value == follower.published) continue;
    follower.counter->Increment(static_cast<double>(value - follower.published));
    follower.published = value;
  }
  PublishLargeKv(core);
  int workers[kRoles] = {};
  for (const auto& [stream, worker] : core.directory().workers()) ++workers[Index(worker->role)];
  for (int role = 0; role < kRoles; ++role) workers_[role]->Set(workers[role]);
  int phases[kPhases] = {};
  core.requests().ForEach(
      [&phases](const RequestMachine& request) { ++phases[Index(request.phase().value())]; });
  for (size_t phase = 0; phase < Index(Phase::kEnded); ++phase) {
    requests_[phase]->Set(phases[phase]);
  }
  gateways_->Set(core.gateways());
  oldest_large_wait_->Set(absl::ToDoubleSeconds(core.OldestLargeWait(now)));
  for (int pair = 0; pair < core.directory().pairs(); ++pair) {
    models_.Publish(pair, core.directory().pair(pair).name, core.ModelOf(pair),
                    core.requests().live(pair));
  }
}

}  // namespace tokenrouter
