// ServiceRecord is what the scheduler's parts note about how a request is served. RequestMachine
// carries it for them; of its own it only begins `reopens` anew when tokens come, and `grant_sent`
// when the decode grant changes.
// Threads: lives on the scheduler's loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "services/scheduler/options/core_options.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

// How far the client has come, and how long it has kept its request waiting.
struct ClientState {
  Position acked = 0;
  Position credit_window = 0;  // How far a writer may run ahead of it.
  // Since when it has waited for its client (credit-blocked or held) without an acknowledgement.
  absl::Time stalled_since;
  bool stall_armed = false;  // Its stall timer is armed.

  // True when the position is higher than the last one. What was never committed does not count.
  bool Acknowledge(Position position, Position committed, absl::Time now) {
    position = std::min(position, committed);
    if (position <= acked) return false;
    acked = position;
    stalled_since = now;
    return true;
  }
};

// What the request counts among the ready rows of a worker (core_state.h).
struct ReadyCount {
  StreamId worker = 0;  // 0: it counts nowhere.
  Position ids = 0;     // The uncomputed tokens that it counts there.
};

struct ServiceRecord {
  ClientState client;
  ReadyCount ready;
  // The tokens cross numerics classes or lack the large model's part: the answer says so.
  bool degraded = false;
  bool placed = false;  // It has had a worker, so it is no longer a newcomer.
  int reopens = 0;      // In a row without a token.
  // Prompt ids that were cached on the side that wrote first; none before its first row.
  std::optional<int32_t> cached_ids;
  // Its gateway has heard of the decode grant as it is now.
  bool grant_sent = false;
  // When its last token was committed, or when it was submitted if this term has committed none.
  absl::Time committed_at;
  absl::Time wait_until = absl::InfiniteFuture();  // In kWaiting (placement.h).

  // The first row that writes or hands off says how much of the prompt was cached.
  void NoteCached(const wire::RowReport& row) {
    const bool wrote = row.ids_size() > 0 || row.has_handoff();
    if (wrote && !cached_ids.has_value()) cached_ids = row.cached_ids();
  }
};

}  // namespace tokenrouter
