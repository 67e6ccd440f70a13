// A closed loop of requests through the scheduler's Connect stream, as a gateway would send them:
// `requests` are always live; each that ends is replaced by a new one. It shares the machine with
// what it measures, so it does little per token: acknowledgements go out once in a quarter of the
// credit. Threads: Run blocks its caller; frames are handled on gRPC threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/request.pb.h"

namespace tokenrouter {

struct SubmitLoopOptions {
  std::string scheduler;  // host:port
  int requests = 64;
  int prompt_tokens = 16;
  int new_tokens = 256;
  std::string algorithm = "random";
  double r = 0.1;  // The algorithm's p; ignored by algorithms without one.
  api::ServiceMode service_mode = api::SERVICE_MODE_UNSPECIFIED;
  absl::Duration warm_up = absl::Seconds(2);
  absl::Duration duration = absl::Seconds(10);
  // Called when the measured time begins, from the caller's thread; may be empty.
  std::function<void()> measuring;
};

struct SubmitLoopResult {
  double committed_per_s = 0;
  double large_share = 0;
  int64_t committed = 0;
  int64_t finished = 0;
  double gap_p50_ms = 0;  // Between chunks of one request.
  double gap_p99_ms = 0;
  // Of these, before a token of the large model that follows one of the small model, where the
  // token came alone: a small step, a large step and what routing adds. 0: none was seen.
  double routed_gap_p50_ms = 0;
  double routed_gap_p99_ms = 0;
};

// UNAVAILABLE when the stream breaks; INTERNAL naming the first rejection.
absl::StatusOr<SubmitLoopResult> RunSubmitLoop(const SubmitLoopOptions& options);

}  // namespace tokenrouter
