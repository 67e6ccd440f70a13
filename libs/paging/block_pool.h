// BlockPool hands out KV-cache blocks by id and counts the references to each. It holds no device
// memory itself. A reference may be reclaimable: its holder keeps the block only for possible
// reuse; a block with no other kind of reference is reclaimable itself.
// Ownership: an id stays valid until its last reference is released; the pool must outlive every
// table that holds its ids.
// Threads: not thread-safe; lives with the engine's owner.
// Units: counts are blocks, never tokens. Asking for 0 blocks is legal and always succeeds.
// Errors: RESOURCE_EXHAUSTED when too few are free (nothing is taken); an id that is not in use
// (double release, foreign id) is a CHECK.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "libs/paging/block_types.h"

namespace tokenrouter {

class BlockPool {
 public:
  // REQUIRES: 0 <= total <= the largest BlockId.
  explicit BlockPool(BlockCount total);

  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  BlockCount total() const { return static_cast<BlockCount>(references_.size()); }
  BlockCount unallocated() const { return static_cast<BlockCount>(free_.size()); }
  // In use, but only by reclaimable references.
  BlockCount reclaimable() const { return reclaimable_; }

  // Appends `count` blocks with one reference each. The most recently released ones come first,
  // since their memory is the likeliest to be in a cache.
  absl::Status Allocate(BlockCount count, std::vector<BlockId>* blocks);
  // Adds one reference to a block in use.
  void AddReference(BlockId block);
  // Removes one reference that is not reclaimable; the block is free when none is left.
  void Release(BlockId block);
  // Turns one of the references into a reclaimable one, until it is released.
  void MarkReclaimable(BlockId block);
  void ReleaseReclaimable(BlockId block);

  // 0 for a free block.
  int32_t references(BlockId block) const;
  bool shared(BlockId block) const { return references(block) > 1; }

 private:
  void Drop(BlockId block);

  std::vector<int32_t> references_;              // By block id, reclaimable ones included.
  std::vector<int32_t> reclaimable_references_;  // By block id.
  std::vector<BlockId> free_;                    // A stack.
  BlockCount reclaimable_ = 0;
};

}  // namespace tokenrouter
