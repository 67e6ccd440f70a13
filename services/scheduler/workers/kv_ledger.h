// KvLedger is the scheduler's account of one large worker's KV: which requests have a reservation
// there, how many blocks each needs for the ids that the worker knows, and when its decode grant
// was last there. The worker counts what it holds at the moment; the ledger counts what it would
// hold if everything were computed.
// Ownership: by value in AttachedWorker. Threads: lives on the scheduler's loop. Units: blocks of
// the worker; positions in tokens. Cost: O(log reservations) per call.
#pragma once

#include <cstdint>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "libs/paging/block_types.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

class KvLedger {
 public:
  struct Reservation {
    int64_t blocks = 0;
    absl::Time since;       // When it was opened.
    absl::Time idle_since;  // InfiniteFuture while the decode grant is here.
    int64_t returns = 0;    // How often the decode grant came back here.
    absl::Duration away;    // How long it was away before those returns, in total.
    bool used = false;      // The decode grant has been here since it was opened.
  };

  // Without limits no blocks are ever lacking; reservations are kept all the same.
  KvLedger() = default;
  KvLedger(int64_t total_blocks, int32_t block_size)
      : total_blocks_(total_blocks), block_size_(block_size) {}

  bool limited() const { return total_blocks_ > 0 && block_size_ > 0; }
  int64_t total_blocks() const { return total_blocks_; }
  int64_t blocks_in_use() const { return blocks_in_use_; }
  int32_t size() const { return static_cast<int32_t>(reservations_.size()); }
  const absl::btree_map<uint64_t, Reservation>& reservations() const { return reservations_; }
  int64_t BlocksOf(Position ids) const { return block_size_ > 0 ? BlocksFor(ids, block_size_) : 0; }

  // Blocks that must be freed before one more sequence of `ids` tokens may be opened. A reserve
  // stays free for the growth of all sequences; it is waived on an empty worker.
  int64_t LackingFor(Position ids) const;
  // Overcommitted blocks.
  int64_t Overdrawn() const;

  // A new reservation is idle until the decode grant arrives. An existing one is only resized.
  void Open(uint64_t request, Position ids, absl::Time now);
  // The calls below ignore a request without a reservation.
  void Resize(uint64_t request, Position ids);
  // The decode grant arrives. Returns how long it was away; zero when it was not here before.
  absl::Duration BeginVisit(uint64_t request, absl::Time now);
  void EndVisit(uint64_t request, absl::Time now);
  void Close(uint64_t request);

 private:
  int64_t total_blocks_ = 0;
  int32_t block_size_ = 0;
  int64_t blocks_in_use_ = 0;
  absl::btree_map<uint64_t, Reservation> reservations_;
};

}  // namespace tokenrouter
