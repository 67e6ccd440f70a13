// Processor time of the machine and of single processes between two readings, from /proc. Threads:
// none.
#pragma once

#include <sys/types.h>

#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tokenrouter {

class CpuMeter {
 public:
  explicit CpuMeter(std::vector<pid_t> processes) : processes_(std::move(processes)) {}

  // INTERNAL when /proc cannot be read, e.g. because a process has ended.
  absl::Status Start();
  absl::Status Stop();

  // The share of idle time of all cores between Start and Stop, in [0, 1].
  double idle_share() const { return idle_share_; }
  // Microseconds that process number `index` used, to 10 ms.
  double used_us(size_t index) const { return used_us_[index]; }

 private:
  struct Reading {
    double idle = 0, total = 0;  // Ticks of the machine.
    std::vector<double> used;    // Ticks by process.
  };
  absl::StatusOr<Reading> Read() const;

  const std::vector<pid_t> processes_;
  Reading start_;
  double idle_share_ = 0;
  std::vector<double> used_us_;
};

}  // namespace tokenrouter
