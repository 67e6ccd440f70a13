#include "services/scheduler/turn_lease.h"

#include <algorithm>
#include <cmath>

#include "libs/status/check.h"

namespace tokenrouter {
namespace {

int32_t ReadyOf(const TurnSnapshot& snapshot, Role role) {
  int32_t sum = 0;
  for (const auto& member : snapshot.members) sum += member.role == role ? member.ready : 0;
  return sum;
}

bool HasRole(const TurnSnapshot& snapshot, Role role) {
  return std::any_of(snapshot.members.begin(), snapshot.members.end(),
                     [role](const auto& member) { return member.role == role; });
}

const TurnSnapshot::Member* LongestUnserved(const TurnSnapshot& snapshot, Role role) {
  const TurnSnapshot::Member* best = nullptr;
  for (const auto& member : snapshot.members) {
    if (member.role != role || member.ready == 0) continue;
    if (best == nullptr || member.last_turn < best->last_turn) best = &member;
  }
  return best;
}

}  // namespace

std::optional<TurnDecision> DecideTurn(const TurnSnapshot& snapshot) {
  const int32_t small = ReadyOf(snapshot, Role::kSmall);
  const int32_t large = ReadyOf(snapshot, Role::kLarge);
  if (small == 0 && large == 0) return std::nullopt;
  bool serve_large = large > 0 && (large >= snapshot.threshold || small == 0);
  if (snapshot.cut_off && small > 0 && large > 0) serve_large = *snapshot.cut_off == Role::kSmall;
  TurnDecision decision;
  if (serve_large) {
    decision.worker = LongestUnserved(snapshot, Role::kLarge)->worker;
    return decision;
  }
  decision.worker = LongestUnserved(snapshot, Role::kSmall)->worker;
  if (HasRole(snapshot, Role::kLarge)) {
    decision.yield_at_departures = std::max(1, snapshot.threshold - large);
  }
  return decision;
}

int32_t SharedThreshold(const CoreOptions& options, int32_t live_requests) {
  if (options.shared_threshold > 0) return options.shared_threshold;
  return std::max(1, static_cast<int32_t>(std::ceil(options.shared_fraction * live_requests)));
}

void TurnLease::Grant(StreamId worker, Role role, uint64_t turn, absl::Time now) {
  TR_CHECK(!held()) << "turn " << turn_ << " is still held by stream " << holder_;
  holder_ = worker;
  role_ = role;
  turn_ = turn;
  granted_at_ = now;
  cut_off_.reset();
}

bool TurnLease::Return(StreamId worker, uint64_t turn, bool rows_left, absl::Duration max,
                       absl::Time now) {
  if (holder_ == 0 || holder_ != worker || turn_ != turn) return false;
  holder_ = 0;
  if (rows_left && now - granted_at_ >= max) cut_off_ = role_;
  return true;
}

bool TurnLease::Expire(absl::Duration limit, absl::Time now) {
  if (!held() || now - granted_at_ <= limit) return false;
  holder_ = 0;
  cut_off_ = role_;
  return true;
}

bool TurnLease::Drop(StreamId worker) {
  if (holder_ != worker || worker == 0) return false;
  holder_ = 0;
  return true;
}

}  // namespace tokenrouter
