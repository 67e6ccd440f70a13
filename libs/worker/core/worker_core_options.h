// What one worker is and what it allows itself, and what its core has counted. Plain values.
// Units: tokens unless a name says otherwise; durations are of the worker's clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "libs/batching_model/wait_outcome.h"
#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

struct WorkerCoreOptions {
  Role role = Role::kSmall;
  std::string worker_id;  // Unique per process start.
  std::string pair;
  std::string tokenizer_fingerprint;  // Empty: not checked.
  std::vector<TokenId> eos_ids;
  std::string device_key;         // Workers that share it need leases; empty: a dedicated device.
  int32_t max_sequences = 256;    // Announced to the scheduler; twice as many are refused.
  int32_t max_rows = 64;          // Of a step.
  int64_t max_step_tokens = 512;  // New ids of a step; at least kMaxVerify + 1.
  absl::Duration max_step =       // Predicted time of a step: a longer prompt is read in chunks.
      absl::InfiniteDuration();
  int64_t idle_step_tokens = 128;  // Of a step in which no row is ready and sequences without a
                                   // grant catch up; 0: never. Ignored with a device key.
  bool prefix_cache = true;        // Closed sequences keep their KV for others that start alike.
  std::vector<wire::StepSample> samples;  // Steps measured before; sent in every hello.
};

// Of the whole life of the core.
struct WorkerCounters {
  uint64_t steps = 0;
  uint64_t committed = 0;     // Tokens.
  uint64_t catch_up_ids = 0;  // Run without returning a choice.
  uint64_t handoffs = 0;
  uint64_t preemptions = 0;
  uint64_t engine_errors = 0;
  uint64_t need_ids = 0;
  uint64_t stale_frames = 0;
  uint64_t refused = 0;       // Requests ended with an error before they ran.
  WaitCounts deferrals{};     // Steps by why they started, where rows may wait.
  absl::Duration lease_wait;  // Time with a ready row and no lease.
};

}  // namespace tokenrouter
