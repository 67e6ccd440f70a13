// A closed loop of requests through the scheduler's Connect stream, as a gateway would send them:
// `requests` are always live; each that ends is replaced by a new one. Threads: Run blocks its
// caller; frames are handled on gRPC threads.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tokenrouter {

struct SubmitLoopOptions {
  std::string scheduler;  // host:port
  int requests = 64;
  int prompt_tokens = 16;
  int new_tokens = 256;
  std::string algorithm = "random";
  double r = 0.1;  // The algorithm's p; ignored by algorithms without one.
  absl::Duration warm_up = absl::Seconds(2);
  absl::Duration duration = absl::Seconds(10);
};

struct SubmitLoopResult {
  double committed_per_s = 0;
  double large_share = 0;
  int64_t finished = 0;
  double gap_p50_ms = 0;  // Between chunks of one request.
  double gap_p99_ms = 0;
};

// UNAVAILABLE when the stream breaks; INTERNAL naming the first rejection.
absl::StatusOr<SubmitLoopResult> RunSubmitLoop(const SubmitLoopOptions& options);

}  // namespace tokenrouter
