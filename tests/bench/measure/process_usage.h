// Memory, threads and open files of a process, from /proc. Threads: none.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "absl/status/statusor.h"

namespace tokenrouter {

struct ProcessUsage {
  double rss_mb = 0;     // Resident memory, of which:
  double own_mb = 0;     // its own (anonymous),
  double mapped_mb = 0;  // and pages of files.
  double peak_mb = 0;    // The most that was resident since the start.
  int64_t threads = 0;
  int64_t files = 0;  // Open descriptors.
};

// INTERNAL when /proc cannot be read, e.g. because the process has ended.
absl::StatusOr<ProcessUsage> ReadProcessUsage(pid_t process);

}  // namespace tokenrouter
