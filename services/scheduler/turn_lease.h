// Turns of the workers that share one device. DecideTurn is the pure policy; TurnLease is the state
// of one device: who holds the lease, since when.
// Threads: lives on the scheduler's loop. A lease is for speed only: after an expiry two workers
// may compute at once and results do not change.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "libs/tokens/token_types.h"
#include "services/scheduler/core_options.h"

namespace tokenrouter {

struct TurnSnapshot {
  struct Member {
    StreamId worker = 0;
    Role role = Role::kSmall;
    int32_t ready = 0;       // Rows that could run now; of a large worker: released ones.
    uint64_t last_turn = 0;  // Turn number of its last lease; 0: never.
  };
  std::span<const Member> members;
  int32_t threshold = 1;        // m, at least 1.
  std::optional<Role> cut_off;  // The last holder ran out of time with rows left.
};

struct TurnDecision {
  StreamId worker = 0;
  int32_t yield_at_departures = 0;  // 0: not for departures.
};

// Serves the large side iff `threshold` rows are ready for it or the small side has nothing; after
// a turn that was cut off the other role goes first. Within a role the longest unserved member.
// Nothing when no member has work.
std::optional<TurnDecision> DecideTurn(const TurnSnapshot& snapshot);

// m of batching: the option, or the fraction of the live requests, rounded up; at least 1.
int32_t SharedThreshold(const CoreOptions& options, int32_t live_requests);

class TurnLease {
 public:
  bool held() const { return holder_ != 0; }
  StreamId holder() const { return holder_; }
  Role holder_role() const { return role_; }
  uint64_t turn() const { return turn_; }
  std::optional<Role> cut_off() const { return cut_off_; }

  // REQUIRES: !held().
  void Grant(StreamId worker, Role role, uint64_t turn, absl::Time now);
  // False when `turn` is not the one that `worker` holds: a late return after an expiry. Rows left
  // after `max` mean that the turn was cut off; before it the holder gave way on its own.
  bool Return(StreamId worker, uint64_t turn, bool rows_left, absl::Duration max, absl::Time now);
  // True when the holder kept it beyond its time; the lease is free afterwards.
  bool Expire(absl::Duration limit, absl::Time now);
  // True when it was held by `worker`, which is gone.
  bool Drop(StreamId worker);

 private:
  StreamId holder_ = 0;
  Role role_ = Role::kSmall;
  uint64_t turn_ = 0;
  absl::Time granted_at_;
  std::optional<Role> cut_off_;
};

}  // namespace tokenrouter
