#include "tests/bench/batching/timed_system.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/worker/engines/synthetic_engine_setup.h"

namespace tokenrouter {
namespace {

constexpr int64_t kAmpleKvBytes = int64_t{1} << 32;

}  // namespace

absl::StatusOr<TimedSystem> TimedSystem::Start(TimedOptions timed) {
  const auto kv = [](int64_t bytes) { return absl::StrCat("--kv_bytes=", bytes); };
  ClusterOptions options{
      .worker_flags = {"--engine=timed", "--max_rows=1024", "--max_step_tokens=65536",
                       "--max_step_ms=60000", "--max_sequences=1024", "--prefix_cache=false"},
      .small_flags = {"--timed_curve=" + timed.small, kv(kAmpleKvBytes)},
      .large_flags = {"--timed_curve=" + timed.large},
      .scheduler_flags = std::move(timed.scheduler_flags),
      .start_gateway = false};
  options.large_flags.push_back(
      kv(timed.large_kv_tokens > 0 ? timed.large_kv_tokens * kHashKvBytesPerToken : kAmpleKvBytes));
  options.scheduler_flags.push_back("--large_prefill=" + timed.large_prefill);
  if (timed.devices == 1) options.worker_flags.push_back("--device_key=shared");
  TR_ASSIGN_OR_RETURN(auto cluster, Cluster::Start(std::move(options)));
  return TimedSystem(std::move(cluster));
}

absl::StatusOr<TimedBurst> TimedSystem::Run(SubmitLoopOptions options) {
  CpuMeter meter({cluster_->scheduler().process->pid(), cluster_->small(0).process->pid(),
                  cluster_->large(0).process->pid()});
  absl::Status metered;
  options.scheduler = absl::StrCat("127.0.0.1:", cluster_->scheduler().port);
  options.measuring = [&] { metered = meter.Start(); };
  TimedBurst burst;
  TR_ASSIGN_OR_RETURN(burst.load, RunSubmitLoop(options));
  TR_RETURN_IF_ERROR(metered);
  TR_RETURN_IF_ERROR(meter.Stop());
  const auto tokens = static_cast<double>(std::max<int64_t>(1, burst.load.committed));
  burst.cpu_idle = meter.idle_share();
  burst.scheduler_us = meter.used_us(0) / tokens;
  burst.small_worker_us = meter.used_us(1) / tokens;
  burst.large_worker_us = meter.used_us(2) / tokens;
  return burst;
}

}  // namespace tokenrouter
