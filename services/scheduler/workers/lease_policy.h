// Leases of the workers that share one device. DecideLease is the pure policy; HeldLease is the
// state of one device: which worker holds the lease, and since when.
// Threads: lives on the scheduler's loop.
// A lease is for speed only: after an expiry two workers may compute at once, and results do not
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
    int32_t ready = 0;        // Rows that are ready; of a large worker, released ones.
    uint64_t last_lease = 0;  // The id of its last lease; 0: never.
    absl::Time oldest = absl::InfiniteFuture();    // Since when its oldest ready row has waited.
    absl::Time serve_by = absl::InfiniteFuture();  // The latest start of its most urgent row.
    absl::Duration step = absl::ZeroDuration();    // Predicted for its ready rows; zero: unknown.
  };
  absl::Time now;
  std::span<const Member> members;
  // kStatic and kModel use m_large, kFixedWait uses wait_large_ms; the others have no parameter.
  BatchingPolicy policy;
  absl::Duration max;           // No lease is longer.
  std::optional<Role> cut_off;  // The role of a last holder that ran out of time with rows left.
};

struct LeaseDecision {
  StreamId worker = 0;
  int32_t yield_at_handoffs = 0;  // 0: handoffs do not end the lease.
  absl::Duration max;             // At least kShortestLease.
  WaitOutcome outcome = WaitOutcome::kImmediate;
};

// A lease allows at least one step.
inline constexpr absl::Duration kShortestLease = absl::Milliseconds(1);

// Serves the side that the policy chooses, or the other side when that one has no ready row:
//   greedy         the large side first
//   static, model  the large side from m_large rows on
//   fixed wait     the large side once its oldest row has waited wait_large_ms
//   longest queue  the large side when it is not the shorter one
// A lease ends once enough rows were handed off that the policy could decide otherwise. Rows that
// must start come first, the most urgent one before others, and leases are cut short so that they
// can start in time. After a lease of the large side that was cut off, or an expired lease of
// either side, the other role goes first. Within a role the longest unserved member is chosen. No
// value when no member has work.
std::optional<LeaseDecision> DecideLease(const LeaseSnapshot& snapshot);

// When a lease of `holder` must end for rows that wait at the other members; the infinite future
// when none of them is urgent.
absl::Time LeaseNeeded(const LeaseSnapshot& snapshot, const LeaseSnapshot::Member& holder);

class HeldLease {
 public:
  bool held() const { return holder_ != 0; }
  StreamId holder() const { return holder_; }
  Role holder_role() const { return role_; }
  uint64_t lease_id() const { return lease_id_; }
  std::optional<Role> cut_off() const { return cut_off_; }

  // When the lease in force ends by itself.
  absl::Time ends() const { return ends_; }

  // REQUIRES: !held().
  void Grant(StreamId worker, Role role, uint64_t lease_id, absl::Duration max, absl::Time now);
  // Makes the lease in force end earlier. REQUIRES: held().
  void Shorten(absl::Time ends);
  // False when `lease_id` is not the lease that `worker` holds, such as a late return after an
  // expiry. Rows left on the large side at the lease's end mean that it was cut off; before the end
  // the holder yielded by itself. A small side that is cut off may go on, because rows that wait
  // for the large side have bounds.
  bool Return(StreamId worker, uint64_t lease_id, bool rows_left, absl::Time now);
  // True when the holder kept it for longer than `limit`; the device is free afterwards.
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
