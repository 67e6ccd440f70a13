// Turns of the workers that share one device. DecideLease is the pure policy; HeldLease is the
// state of one device: who holds the lease, since when. Threads: lives on the scheduler's loop. A
// lease is for speed only: after an expiry two workers may compute at once and results do not
// change.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "libs/batching_model/simulator.h"
#include "libs/batching_model/wait_outcome.h"
#include "libs/tokens/token_types.h"
#include "services/scheduler/options/core_options.h"

namespace tokenrouter {

struct LeaseSnapshot {
  struct Member {
    StreamId worker = 0;
    Role role = Role::kSmall;
    int32_t ready = 0;        // Rows that could run now; of a large worker: released ones.
    uint64_t last_lease = 0;  // Turn number of its last lease; 0: never.
    absl::Time oldest = absl::InfiniteFuture();    // Since when its oldest ready row waits.
    absl::Time serve_by = absl::InfiniteFuture();  // When one of its rows must start at the latest.
    absl::Duration step = absl::ZeroDuration();    // Predicted of its ready rows; zero: unknown.
  };
  absl::Time now;
  std::span<const Member> members;
  // Static and model: threshold m_large. Fixed wait: wait_large_ms. The rest has no parameter.
  BatchingPolicy policy;
  absl::Duration max;           // No turn is longer.
  std::optional<Role> cut_off;  // The last holder ran out of time with rows left.
};

struct LeaseDecision {
  StreamId worker = 0;
  int32_t yield_at_handoffs = 0;  // 0: not for handoffs.
  absl::Duration max;             // At least kShortestLease.
  WaitOutcome outcome = WaitOutcome::kImmediate;
};

// A turn is for one step at least.
inline constexpr absl::Duration kShortestLease = absl::Milliseconds(1);

// Serves the side that the policy says, and the small side when the large one has nothing or the
// other way round:
//   greedy         the large side first
//   static, model  the large side from m_large rows on
//   fixed wait     the large side once its oldest row has waited wait_large_ms
//   longest queue  the large side when it is not the shorter one
// A turn ends when so many rows left that the policy could say otherwise. Rows that must start come
// first, the most urgent one before others, and turns are cut so that they can. After a turn of the
// large side that was cut off, or one of either side that expired, the other role goes first.
// Within a role the longest unserved member. Nothing when no member has work.
std::optional<LeaseDecision> DecideLease(const LeaseSnapshot& snapshot);

// When a turn of `holder` must end for what waits at the other members; the infinite future when
// nothing there is urgent.
absl::Time LeaseNeeded(const LeaseSnapshot& snapshot, const LeaseSnapshot::Member& holder);

class HeldLease {
 public:
  bool held() const { return holder_ != 0; }
  StreamId holder() const { return holder_; }
  Role holder_role() const { return role_; }
  uint64_t lease_id() const { return lease_id_; }
  std::optional<Role> cut_off() const { return cut_off_; }

  // When the turn in force ends by itself.
  absl::Time ends() const { return ends_; }

  // REQUIRES: !held().
  void Grant(StreamId worker, Role role, uint64_t lease_id, absl::Duration max, absl::Time now);
  // The turn in force ends earlier. REQUIRES: held().
  void Shorten(absl::Time ends);
  // False when `turn` is not the one that `worker` holds: a late return after an expiry. Rows left
  // on the large side at its end mean that the turn was cut off; before it the holder gave way on
  // its own. A small side that is cut off may go on: rows that wait for the large side have bounds.
  bool Return(StreamId worker, uint64_t lease_id, bool rows_left, absl::Time now);
  // True when the holder kept it beyond its time; the lease is free afterwards.
  bool Expire(absl::Duration limit, absl::Time now);
  // True when it was held by `worker`, which is gone.
  bool Drop(StreamId worker);

 private:
  StreamId holder_ = 0;
  Role role_ = Role::kSmall;
  uint64_t lease_id_ = 0;
  absl::Time granted_at_;
  absl::Time ends_;
  std::optional<Role> cut_off_;
};

}  // namespace tokenrouter
