// BlockTable maps the positions of one sequence to slots of blocks. Token i lies in block
// blocks()[i / block_size] at offset i % block_size.
// Ownership: the table holds one reference to each of its blocks. It cannot release them by itself:
// call Truncate(0, pool) before it is destroyed. All calls must pass the same pool.
// Threads: not thread-safe; lives with the engine's owner.
// Sharing: Fork shares whole blocks. A block that others refer to is never written: Extend
// replaces a shared, partly filled last block by a copy and reports it.
// Errors: RESOURCE_EXHAUSTED when the pool has too few blocks; nothing is changed then.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "libs/paging/block_pool.h"
#include "libs/paging/block_types.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

class BlockTable {
 public:
  // REQUIRES: block_size > 0 tokens.
  explicit BlockTable(int32_t block_size);

  Position length() const { return length_; }
  int32_t block_size() const { return block_size_; }
  std::span<const BlockId> blocks() const { return blocks_; }

  // The last block when it is partly filled: the one that the next Extend writes into. -1: none.
  BlockId open_block() const {
    return length_ % block_size_ == 0 ? BlockId{-1} : blocks_[length_ / block_size_];
  }
  // Blocks to append for `count` more tokens; a copy of a shared open block comes on top.
  BlockCount BlocksToAppend(Position count) const;

  // From now on nothing may be added: the table is only kept to be forked or cut, and its blocks
  // count as reclaimable unless others hold them too. It cannot be undone.
  void MarkReclaimable(BlockPool* pool);
  bool reclaimable() const { return reclaimable_; }

  // Adds `count` positions. Appends to `copies` what must be copied before they are written.
  // REQUIRES: !reclaimable().
  absl::Status Extend(Position count, BlockPool* pool, std::vector<BlockCopy>* copies);
  // Drops everything from `length` on. REQUIRES: 0 <= length <= length().
  void Truncate(Position length, BlockPool* pool);
  // Makes `child`, which must be empty, the first `length` tokens of this table: whole blocks are
  // shared, a part of a block is copied. REQUIRES: 0 <= length <= length().
  absl::Status Fork(Position length, BlockPool* pool, BlockTable* child,
                    std::vector<BlockCopy>* copies) const;

 private:
  int32_t block_size_;
  Position length_ = 0;
  bool reclaimable_ = false;
  std::vector<BlockId> blocks_;
};

}  // namespace tokenrouter
