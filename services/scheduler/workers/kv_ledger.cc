#include "services/scheduler/workers/kv_ledger.h"

#include <algorithm>

namespace tokenrouter {
namespace {

// The reserve is one block for each sequence, but at most this fraction (one eighth) of all blocks.
constexpr int64_t kLargestReserveShare = 8;

}  // namespace

int64_t KvLedger::LackingFor(Position ids) const {
  if (!limited() || reservations_.empty()) return 0;
  const int64_t reserve = std::min<int64_t>(size() + 1, total_blocks_ / kLargestReserveShare);
  return std::max<int64_t>(0, blocks_in_use_ + BlocksOf(ids) + reserve - total_blocks_);
}

int64_t KvLedger::Overdrawn() const {
  return limited() ? std::max<int64_t>(0, blocks_in_use_ - total_blocks_) : 0;
}

void KvLedger::Open(uint64_t request, Position ids, absl::Time now) {
  reservations_.try_emplace(request, Reservation{.since = now, .idle_since = now});
  Resize(request, ids);
}

void KvLedger::Resize(uint64_t request, Position ids) {
  const auto found = reservations_.find(request);
  if (found == reservations_.end()) return;
  const int64_t blocks = BlocksOf(ids);
  blocks_in_use_ += blocks - found->second.blocks;
  found->second.blocks = blocks;
}

absl::Duration KvLedger::BeginVisit(uint64_t request, absl::Time now) {
  const auto found = reservations_.find(request);
  if (found == reservations_.end()) return absl::ZeroDuration();
  Reservation& reservation = found->second;
  const bool returns = reservation.used && reservation.idle_since != absl::InfiniteFuture();
  const absl::Duration away = returns ? now - reservation.idle_since : absl::ZeroDuration();
  reservation.returns += returns;
  reservation.away += away;
  reservation.used = true;
  reservation.idle_since = absl::InfiniteFuture();
  return away;
}

void KvLedger::EndVisit(uint64_t request, absl::Time now) {
  const auto found = reservations_.find(request);
  if (found == reservations_.end() || found->second.idle_since != absl::InfiniteFuture()) return;
  found->second.idle_since = now;
}

void KvLedger::Close(uint64_t request) {
  const auto found = reservations_.find(request);
  if (found == reservations_.end()) return;
  blocks_in_use_ -= found->second.blocks;
  reservations_.erase(found);
}

}  // namespace tokenrouter
