#include "libs/paging/block_pool.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"

namespace tokenrouter {

BlockPool::BlockPool(BlockCount total) {
  TR_CHECK(total >= 0 && total <= std::numeric_limits<BlockId>::max()) << "total " << total;
  references_.assign(total, 0);
  reclaimable_references_.assign(total, 0);
  free_.reserve(total);
  for (BlockCount block = total; block > 0; --block) {
    free_.push_back(static_cast<BlockId>(block - 1));
  }
}

absl::Status BlockPool::Allocate(BlockCount count, std::vector<BlockId>* blocks) {
  TR_CHECK(count >= 0) << "count " << count;
  if (count > unallocated()) {
    return absl::ResourceExhaustedError(absl::StrCat("KV cache: ", count, " blocks wanted, ",
                                                     unallocated(), " of ", total(),
                                                     " free; release or truncate sequences first"));
  }
  for (BlockCount i = 0; i < count; ++i) {
    const BlockId block = free_.back();
    free_.pop_back();
    references_[block] = 1;
    blocks->push_back(block);
  }
  return absl::OkStatus();
}

void BlockPool::AddReference(BlockId block) {
  TR_CHECK(references(block) > 0) << "block " << block << " is free";
  reclaimable_ -= references_[block] == reclaimable_references_[block];
  ++references_[block];
}

void BlockPool::Release(BlockId block) {
  TR_CHECK(references(block) > 0) << "block " << block << " is free already";
  TR_CHECK(references_[block] > reclaimable_references_[block])
      << "block " << block << " is only reclaimable";
  Drop(block);
  reclaimable_ += references_[block] > 0 && references_[block] == reclaimable_references_[block];
}

void BlockPool::MarkReclaimable(BlockId block) {
  TR_CHECK(references(block) > reclaimable_references_[block])
      << "block " << block << " is reclaimable or free";
  ++reclaimable_references_[block];
  reclaimable_ += references_[block] == reclaimable_references_[block];
}

void BlockPool::ReleaseReclaimable(BlockId block) {
  TR_CHECK(references(block) > 0 && reclaimable_references_[block] > 0)
      << "block " << block << " is not reclaimable";
  --reclaimable_references_[block];
  Drop(block);
  // Its other references stay what they were: only the last one changes the count.
  reclaimable_ -= references_[block] == 0;
}

void BlockPool::Drop(BlockId block) {
  if (--references_[block] == 0) free_.push_back(block);
}

int32_t BlockPool::references(BlockId block) const {
  TR_CHECK(block >= 0 && block < total()) << "block " << block << " of " << total();
  return references_[block];
}

}  // namespace tokenrouter
