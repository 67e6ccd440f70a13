// Settings of the scheduler process.
// Errors: INVALID_ARGUMENT names the flag, environment variable or file and key, the value, and
// what is allowed.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/scheduler/options/core_options.h"

namespace tokenrouter {

struct SchedulerOptions {
  std::string listen = "127.0.0.1:8002";  // host:port of gRPC; port 0 picks a free port.
  std::string admin = "127.0.0.1:9101";   // host:port of /metrics and probes.
  std::string log_level = "info";
  absl::Duration drain = absl::Seconds(10);  // Time for requests in flight after SIGTERM.
  CoreOptions core;
};

// No value when --help was given and printed.
absl::StatusOr<std::optional<SchedulerOptions>> ParseSchedulerOptions(int argc,
                                                                      const char* const* argv);

}  // namespace tokenrouter
