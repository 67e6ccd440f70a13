// A scheduler, a small and a large worker on timed engines, and bursts of closed-loop load on them.
// Ownership: owns the processes. Threads: one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/cpu_meter.h"
#include "tests/bench/submit_loop.h"
#include "tests/support/cluster.h"

namespace tokenrouter {

struct TimedBurst {
  SubmitLoopResult load;
  double cpu_idle = 0;  // Share of the machine.
  // Processor time per committed token, in microseconds.
  double scheduler_us = 0, small_worker_us = 0, large_worker_us = 0;
};

class TimedSystem {
 public:
  // `small` and `large` are curves (libs/inference/step_curve.h). Limits of the workers are out of
  // the way, and the large model reads nothing ahead: as in the simulator, it reads what its rows
  // have not seen.
  static absl::StatusOr<TimedSystem> Start(const std::string& small, const std::string& large,
                                           int devices, std::vector<std::string> scheduler_flags);

  // The scheduler's address is filled in. Fails also when a process has died.
  absl::StatusOr<TimedBurst> Run(SubmitLoopOptions options);

  Cluster& cluster() { return *cluster_; }

 private:
  explicit TimedSystem(std::unique_ptr<Cluster> cluster) : cluster_(std::move(cluster)) {}

  std::unique_ptr<Cluster> cluster_;
};

}  // namespace tokenrouter
