// A scheduler, a small and a large worker on timed engines, and bursts of closed-loop load on them.
// Ownership: owns the processes. Threads: one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/measure/cpu_meter.h"
#include "tests/bench/scheduler/submit_loop.h"
#include "tests/support/cluster.h"

namespace tokenrouter {

struct TimedBurst {
  SubmitLoopResult load;
  double cpu_idle = 0;  // Share of the machine.
  // Processor time per committed token, in microseconds.
  double scheduler_us = 0, small_worker_us = 0, large_worker_us = 0;
};

struct TimedOptions {
  std::string small, large;  // Curves (libs/synthetic/step_curve.h).
  int devices = 2;
  std::vector<std::string> scheduler_flags = {};
  int64_t large_kv_tokens = 0;  // 0: large enough never to limit.
  // By default the large model does no background prefill: as in the simulator, its rows compute
  // their own uncomputed tokens.
  std::string large_prefill = "lazy";
};

class TimedSystem {
 public:
  // Other limits of the workers are large enough never to apply.
  static absl::StatusOr<TimedSystem> Start(TimedOptions options);

  // The scheduler's address is filled in. Fails also when a process has died.
  absl::StatusOr<TimedBurst> Run(SubmitLoopOptions options);

  Cluster& cluster() { return *cluster_; }

 private:
  explicit TimedSystem(std::unique_ptr<Cluster> cluster) : cluster_(std::move(cluster)) {}

  std::unique_ptr<Cluster> cluster_;
};

}  // namespace tokenrouter
