// How a gateway's stream to the scheduler is set up, and what is counted of it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace tokenrouter {

struct LinkOptions {
  std::string scheduler;  // Its gRPC target: the shell dials it and error messages name it.
  std::string gateway_id;
  std::string pair;
  std::string tokenizer_fingerprint;
  // Acknowledgements are gathered for this long into one frame.
  absl::Duration ack_interval = absl::Milliseconds(2);
  // How long a new request, or one that has tokens, may wait for a link before it fails.
  absl::Duration submit_wait = absl::Seconds(5);
  absl::Duration resume_wait = absl::Seconds(60);
  // A scheduler that has not yet noticed the loss of the old stream calls a resubmit a duplicate.
  absl::Duration duplicate_retry = absl::Milliseconds(200);
  // Tokens of one request that the client has not been given yet. The scheduler's credit is far
  // below it; a peer that ignores credit loses the request, not this process its memory.
  int32_t max_unacknowledged = 4096;
};

struct LinkCounters {
  uint64_t resubmitted = 0;
  uint64_t dropped_unknown = 0;    // Chunks and rejections of requests that are not live.
  uint64_t dropped_duplicate = 0;  // Base below the committed length.
  uint64_t dropped_gap = 0;        // Base above it.
  uint64_t dropped_term = 0;       // Frames of another term.
  uint64_t connects = 0;           // Welcomes heard.
};

}  // namespace tokenrouter
