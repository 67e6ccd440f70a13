// Limits and policies of the scheduler core. Plain data: the server fills it from flags, tests and
// the simulator set what they need. Durations are wall-clock waits, and one of them bounds every
// wait of a request.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "libs/batching_model/mode_controller.h"
#include "libs/timing/redial_wait.h"
#include "libs/tokens/token_types.h"
#include "services/scheduler/pair_model/pair_model.h"

namespace tokenrouter {

// One gateway or worker stream of this process. Numbers are never reused; 0: no stream.
using StreamId = uint64_t;

// What happens to requests that need the large model while no large worker is attached.
enum class LargePoolGone : uint8_t {
  kFail,       // The request ends with UNAVAILABLE.
  kSmallOnly,  // The small model continues decoding to the end; the answer is marked degraded.
  kWait,       // The request waits up to no_large_worker_timeout, then ends with UNAVAILABLE.
};

// When the large side of a request is opened, and when it prefills what the small side wrote.
enum class LargePrefill : uint8_t {
  kAuto,   // kIdle on a dedicated device, else kLazy.
  kLazy,   // At its first decode grant; ids not yet sent travel with a grant.
  kIdle,   // At admission if there is capacity; prefilled in the background when no row is ready.
  kEager,  // At admission if there is capacity; prefilled at once, like a row that is ready.
};

struct CoreOptions {
  // Requests in flight, over all pairs. Resumed ones are always admitted: they were before.
  int max_requests = 4096;
  // Ids of all of them together: prompt + max_new_tokens of each, held against it at admission.
  // This bounds the process's memory. An id takes 5 bytes of history (up to 10 while it grows) and,
  // while everything opens again after the loss of a worker, about 10 in frames: 20 in all, 640 MiB
  // here. As many as max_requests need at a context of 8192 ids.
  int64_t max_ids = int64_t{32} << 20;
  // After the beginning of a term: how long peers that live may take to come back, a redial and a
  // heartbeat. Until then a pool that had no worker in this term is not known to be empty, and
  // new requests are only admitted below this share of max_requests: the rest is for resumed ones.
  absl::Duration settling = kLongestRedial + absl::Seconds(1);
  double new_share_while_settling = 0.5;
  // New requests that may wait for a worker with capacity. Requests beyond this limit are refused.
  int max_queued = 1024;
  LargePoolGone large_pool_gone = LargePoolGone::kWait;
  // Under kWait, from the loss of the last large worker.
  absl::Duration no_large_worker_timeout = absl::Seconds(10);
  absl::Duration no_small_worker_timeout = absl::Seconds(10);  // While no small worker is attached.
  absl::Duration admission_timeout = absl::Seconds(60);        // For a slot on a full pool.
  // How long a decode grant in the middle of a request waits for a KV reservation on a full large
  // pool; it times out only if the pool makes no progress. After evict_overdue_after the request
  // may evict a resident whose residency amortised its prefill: one resident for so long that
  // recomputing its history costs at most rebuild_share of its share of the device.
  absl::Duration large_kv_timeout = absl::Minutes(10);
  absl::Duration evict_overdue_after = absl::Seconds(5);
  double rebuild_share = 0.1;
  LargePrefill large_prefill = LargePrefill::kLazy;  // The default of the scheduler's flag is auto.
  absl::Duration client_stall = absl::Seconds(60);   // Blocked or held without acknowledgement.
  // What a refused client is told, before its jitter: how long the present queue will take, at
  // least a second, so that clients do not hammer, and at most what people wait for.
  absl::Duration least_retry_after = absl::Seconds(1);
  absl::Duration most_retry_after = absl::Seconds(30);

  // Committed tokens that a writer may be ahead of the client's acknowledgement.
  Position credit = 64;
  Position string_stop_credit = 16;

  // Which rows wait for a fuller batch. Under kModel the pair's plan decides. Until there is a
  // plan, no row waits on dedicated devices; on a shared device the large side waits for a fraction
  // of the live requests (PairModelOptions).
  BatchingPolicy batching = {.kind = BatchingPolicy::Kind::kModel};
  // No row waits longer for a fuller batch, or for the lease of a shared device.
  absl::Duration defer_cap = absl::Seconds(1);
  // On a shared device under kModel: the number of ready rows from which the large side is served,
  // whatever the plan says. 0: as planned.
  int shared_threshold = 0;
  // The longest lease. A running step is never interrupted, but workers cut prompts so that a chunk
  // fits into it.
  absl::Duration lease_max = absl::Milliseconds(200);
  absl::Duration lease_grace = absl::Seconds(1);  // Beyond lease_max and two predicted steps.

  absl::Duration heartbeat = absl::Seconds(1);
  int missed_heartbeats = 3;
  // A step is wedged once it takes longer than max(step_floor, step_factor x predicted).
  absl::Duration step_floor = absl::Seconds(5);
  double step_factor = 20;
  // The bound while a worker predicts nothing, since its first step may be a long prefill.
  absl::Duration unpredicted_step = absl::Seconds(60);
  // Between two rounds of a worker's step loop without a step; a round takes milliseconds.
  absl::Duration loop_stall = absl::Seconds(10);
  // A decode grant without a token, or more where what its worker has to run is predicted to take
  // more than 1 / step_factor of that. Then the request is opened again.
  absl::Duration grant_timeout = absl::Minutes(2);
  absl::Duration keep_unclaimed = absl::Seconds(30);
  // A worker whose stream broke may attach again for so long before its requests go elsewhere; it
  // dials some five times in it. Silent and wedged workers get none.
  absl::Duration reattach_grace = absl::Seconds(1);

  PairModelOptions model;
  // How every pair is served. Without a value the pair's model decides.
  std::optional<ServiceMode> forced_mode;
  // Tokens of one large-only window; at its end the mode is decided anew. The end of a window costs
  // a round trip to the scheduler, and a change of mode takes effect only there.
  int32_t large_alone_window = 64;

  // A peer that has heard a term so far beyond ours is refused rather than followed. Terms are unix
  // milliseconds, no clock is ten years off, and the numbers can never wrap.
  uint64_t max_term_lead = uint64_t{10} * 365 * 24 * 3600 * 1000;

  // Reopens of one request without an accepted row in between, after which it is given up.
  int max_reopens = 16;
  // A request that ran on a worker when that was lost is suspected of it: at most one suspect runs
  // on a worker at a time, until so many of its rows were accepted there: one after all its ids
  // were read again, and one decoded after them.
  int suspect_rows = 2;
  // A request that ran on so many lost workers in a row is given up: the first may be by chance or
  // by a neighbour, after it no other suspect is near.
  int max_worker_losses = 3;
  // A suspect does not wait longer to run alone; after that, it runs with other suspects.
  absl::Duration suspect_wait = absl::Seconds(30);
};

}  // namespace tokenrouter
