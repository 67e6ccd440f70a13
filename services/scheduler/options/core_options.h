// Limits and policies of the scheduler core. Plain data: the server fills it from flags, tests and
// the simulator set what they need. Durations are wall-clock waits; every wait of a request is
// bounded by one of them.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "libs/batching_model/mode_controller.h"
#include "libs/tokens/token_types.h"
#include "services/scheduler/pair_model/pair_model.h"

namespace tokenrouter {

// One gateway or worker stream of this process; never reused. 0: none.
using StreamId = uint64_t;

// What becomes of requests that need the large model when no large worker is attached.
enum class LargePoolGone : uint8_t {
  kFail,       // The request ends with UNAVAILABLE.
  kSmallOnly,  // The small model writes on until the end; the answer is marked degraded.
  kWait,       // It waits up to no_large_worker_timeout for a worker, then ends with UNAVAILABLE.
};

// When the large side of a request is opened and reads what the small side wrote.
enum class LargePrefill : uint8_t {
  kAuto,   // kIdle where the large worker has a device of its own, else kLazy.
  kLazy,   // At its first turn; unseen ids travel with a turn.
  kIdle,   // When it is admitted, if there is room; read when nothing is ready.
  kEager,  // When it is admitted, if there is room; read at once, like a row that is ready.
};

struct CoreOptions {
  // Requests in flight, over all pairs.
  int max_requests = 4096;
  // New requests that wait for a worker with room; beyond it they are refused.
  int max_queued = 1024;
  LargePoolGone large_pool_gone = LargePoolGone::kWait;
  // Without any large worker (kWait), from the loss of the last one.
  absl::Duration no_large_worker_timeout = absl::Seconds(10);
  absl::Duration no_small_worker_timeout = absl::Seconds(10);  // Without any small worker.
  absl::Duration admission_timeout = absl::Seconds(60);        // For a seat on a full pool.
  // Of a turn in the middle of a request for a place on a full large pool; it ends only if the pool
  // stands still. After evict_overdue_after it takes the place of a resident that has had its time:
  // so long that reading its history again costs at most rebuild_share of its part of the device.
  absl::Duration large_kv_timeout = absl::Minutes(10);
  absl::Duration evict_overdue_after = absl::Seconds(5);
  double rebuild_share = 0.1;
  LargePrefill large_prefill = LargePrefill::kLazy;  // The scheduler's flag says auto.
  absl::Duration client_stall = absl::Seconds(60);   // Parked without a new acknowledgement.
  absl::Duration retry_after = absl::Seconds(1);     // What a refused client is told.

  // Committed tokens that may be ahead of the client's acknowledgement.
  Position credit = 64;
  Position string_stop_credit = 16;

  // Who waits for a fuller batch. Model: what the pair's plan says; until there is one nobody waits
  // on devices of their own, and on a shared one the large side waits for a fraction of the live
  // requests (PairModelOptions).
  BatchingPolicy batching = {.kind = BatchingPolicy::Kind::kModel};
  // No row waits longer for a fuller batch, or for its turn on a shared device.
  absl::Duration defer_cap = absl::Seconds(1);
  // Shared device under the model: the large side is served once so many rows are ready for it,
  // whatever the plan says. 0: as planned.
  int shared_threshold = 0;
  // Longest turn. A step is never broken off, but workers cut prompts so that a chunk fits into it.
  absl::Duration lease_max = absl::Milliseconds(200);
  absl::Duration lease_grace = absl::Seconds(1);  // Beyond lease_max and two predicted steps.

  absl::Duration heartbeat = absl::Seconds(1);
  int missed_heartbeats = 3;
  absl::Duration step_floor = absl::Seconds(5);  // A step is wedged beyond max(floor, factor x
  double step_factor = 20;                       // predicted).
  // The bound while a worker predicts nothing: its first step may be a long prefill.
  absl::Duration unpredicted_step = absl::Seconds(60);
  absl::Duration keep_unclaimed = absl::Seconds(30);

  PairModelOptions model;
  // How every pair is served; nothing: as its model says.
  std::optional<ServiceMode> forced_mode;
  // Tokens that the large model writes alone before that is decided anew. The end of a window costs
  // a round trip to the scheduler, and a change of mode waits for it.
  int32_t large_alone_window = 64;

  // Reopens of one request without a single accepted row in between before it is given up.
  int max_reopens = 16;
};

}  // namespace tokenrouter
