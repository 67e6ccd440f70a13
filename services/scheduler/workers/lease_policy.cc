#include "services/scheduler/workers/lease_policy.h"

#include <algorithm>

#include "libs/status/check.h"

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;
using Member = LeaseSnapshot::Member;

struct Queues {
  int32_t small = 0;
  int32_t large = 0;
  absl::Time oldest_large = absl::InfiniteFuture();
  bool both_roles = false;
};

struct Choice {
  Role role = Role::kSmall;
  WaitOutcome outcome = WaitOutcome::kImmediate;
};

Queues QueuesOf(const LeaseSnapshot& snapshot) {
  Queues queues;
  bool seen[kRoles] = {};
  for (const Member& member : snapshot.members) {
    seen[static_cast<int>(member.role)] = true;
    (member.role == Role::kSmall ? queues.small : queues.large) += member.ready;
    if (member.role == Role::kLarge && member.ready > 0) {
      queues.oldest_large = std::min(queues.oldest_large, member.oldest);
    }
  }
  queues.both_roles = seen[0] && seen[1];
  return queues;
}

Choice ByPolicy(const LeaseSnapshot& snapshot, const Queues& queues) {
  if (queues.small == 0) return {Role::kLarge, WaitOutcome::kIdle};
  if (queues.large == 0) return {Role::kSmall, WaitOutcome::kIdle};
  const BatchingPolicy& policy = snapshot.policy;
  switch (policy.kind) {
    case Kind::kGreedy:
      return {Role::kLarge, WaitOutcome::kImmediate};
    case Kind::kStatic:
    case Kind::kModel:
      if (queues.large >= policy.m_large) return {Role::kLarge, WaitOutcome::kSize};
      break;
    case Kind::kFixedWait:
      if (snapshot.now >= queues.oldest_large + absl::Milliseconds(policy.wait_large_ms)) {
        return {Role::kLarge, WaitOutcome::kTimer};
      }
      break;
    case Kind::kLongestQueue:
      if (queues.large >= queues.small) return {Role::kLarge, WaitOutcome::kSize};
      break;
  }
  return {Role::kSmall, WaitOutcome::kImmediate};
}

// After how many handoffs the policy may decide otherwise. 0: handoffs change nothing.
int32_t YieldAt(const LeaseSnapshot& snapshot, const Queues& queues, Role role) {
  if (!queues.both_roles) return 0;
  const bool small = role == Role::kSmall;
  const int32_t m = std::max(1, snapshot.policy.m_large);
  switch (snapshot.policy.kind) {
    case Kind::kGreedy:
      return small ? 1 : 0;
    case Kind::kStatic:
    case Kind::kModel:
      return std::max(1, small ? m - queues.large : queues.large - m + 1);
    case Kind::kFixedWait:
      // The wait of rows that are there already is in the length of the lease.
      return small && queues.large > 0 ? 0 : 1;
    case Kind::kLongestQueue:
      return small ? std::max(1, (queues.small - queues.large + 1) / 2)
                   : std::max(1, (queues.large - queues.small) / 2 + 1);
  }
  return 0;
}

const Member* LongestUnserved(const LeaseSnapshot& snapshot, Role role) {
  const Member* best = nullptr;
  for (const Member& member : snapshot.members) {
    if (member.role != role || member.ready == 0) continue;
    if (best == nullptr || member.last_lease < best->last_lease) best = &member;
  }
  return best;
}

// The member whose row must start first, if that row cannot wait for a step of another member.
const Member* MostUrgent(const LeaseSnapshot& snapshot) {
  const Member* urgent = nullptr;
  absl::Duration step = absl::ZeroDuration();
  for (const Member& member : snapshot.members) {
    if (member.ready == 0) continue;
    if (urgent == nullptr || member.serve_by < urgent->serve_by) urgent = &member;
  }
  if (urgent == nullptr) return nullptr;
  for (const Member& member : snapshot.members) {
    if (member.ready > 0 && &member != urgent) step = std::max(step, member.step);
  }
  return snapshot.now + step >= urgent->serve_by ? urgent : nullptr;
}

}  // namespace

std::optional<LeaseDecision> DecideLease(const LeaseSnapshot& snapshot) {
  const Queues queues = QueuesOf(snapshot);
  if (queues.small == 0 && queues.large == 0) return std::nullopt;
  Choice choice = ByPolicy(snapshot, queues);
  if (snapshot.cut_off && queues.small > 0 && queues.large > 0) {
    choice = {Other(*snapshot.cut_off), WaitOutcome::kBound};
  }
  const Member* holder = LongestUnserved(snapshot, choice.role);
  if (const Member* const urgent = MostUrgent(snapshot); urgent != nullptr) {
    if (urgent->role != choice.role) choice = {urgent->role, WaitOutcome::kBound};
    holder = urgent;
  }
  const absl::Duration left = LeaseNeeded(snapshot, *holder) - snapshot.now;
  return LeaseDecision{
      .worker = holder->worker,
      .yield_at_handoffs = YieldAt(snapshot, queues, choice.role),
      .max = std::clamp(left, kShortestLease, std::max(kShortestLease, snapshot.max)),
      .outcome = choice.outcome};
}

absl::Time LeaseNeeded(const LeaseSnapshot& snapshot, const Member& holder) {
  absl::Time needed = absl::InfiniteFuture();
  for (const Member& member : snapshot.members) {
    if (member.ready == 0 || member.worker == holder.worker) continue;
    needed = std::min(needed, member.serve_by);
    const bool waits = snapshot.policy.kind == Kind::kFixedWait && member.role == Role::kLarge &&
                       holder.role == Role::kSmall;
    if (waits) {
      needed = std::min(needed, member.oldest + absl::Milliseconds(snapshot.policy.wait_large_ms));
    }
  }
  // The holder's last step may begin just before the lease ends.
  return needed - holder.step;
}

void HeldLease::Grant(StreamId worker, Role role, uint64_t lease_id, absl::Duration max,
                      absl::Time now) {
  TR_CHECK(!held()) << "lease " << lease_id_ << " is still held by stream " << holder_;
  holder_ = worker;
  role_ = role;
  lease_id_ = lease_id;
  granted_at_ = now;
  ends_ = now + max;
  cut_off_.reset();
}

void HeldLease::Shorten(absl::Time ends) {
  TR_CHECK(held());
  ends_ = std::min(ends_, ends);
}

bool HeldLease::Return(StreamId worker, uint64_t lease_id, bool rows_left, absl::Time now) {
  if (holder_ == 0 || holder_ != worker || lease_id_ != lease_id) return false;
  holder_ = 0;
  if (rows_left && now >= ends_ && role_ == Role::kLarge) cut_off_ = role_;
  return true;
}

bool HeldLease::Expire(absl::Duration limit, absl::Time now) {
  if (!held() || now - granted_at_ <= limit) return false;
  holder_ = 0;
  cut_off_ = role_;
  return true;
}

bool HeldLease::Drop(StreamId worker) {
  if (holder_ != worker || worker == 0) return false;
  holder_ = 0;
  return true;
}

}  // namespace tokenrouter
