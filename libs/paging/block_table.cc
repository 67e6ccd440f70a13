#include "libs/paging/block_table.h"

#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
BlockTable::BlockTable(int32_t block_size) : block_size_(block_size) {
  TR_CHECK(block_size > 0) << "block size " << block_size;
}

BlockCount BlockTable::BlocksToAppend(Position count) const {
  TR_CHECK(count >= 0) << "count " << count;
  return BlocksFor(int64_t{length_} + count, block_size_) - static_cast<BlockCount>(blocks_.size());
}

void BlockTable::MarkReclaimable(BlockPool* pool) {
  TR_CHECK(!reclaimable_) << "reclaimable already";
  reclaimable_ = true;
  for (const BlockId block : blocks_) pool->MarkReclaimable(block);
}

absl::Status BlockTable::Extend(Position count, BlockPool* pool, std::vector<BlockCopy>* copies) {
  TR_CHECK(!reclaimable_) << "a reclaimable table does not grow";
  const BlockId open = open_block();
  const bool copy = count > 0 && open >= 0 && pool->shared(open);
  TR_RETURN_IF_ERROR(pool->Allocate(BlocksToAppend(count) + (copy ? 1 : 0), &blocks_));
  if (copy) {
    const BlockId replacement = blocks_.back();
    blocks_.pop_back();
    copies->push_back({open, replacement, length_ % block_size_});
    blocks_[length_ / block_size_] = replacement;
    pool->Release(open);
  }
  length_ += count;
  return absl::OkStatus();
}

void BlockTable::Truncate(Position length, BlockPool* pool) {
  TR_CHECK(length >= 0 && length <= length_) << "to " << length << " of " << length_;
  const auto keep = static_cast<size_t>(BlocksFor(length, block_size_));
  while (blocks_.size() > keep) {
    reclaimable_ ? pool->ReleaseReclaimable(blocks_.back()) : pool->Release(blocks_.back());
    blocks_.pop_back();
  }
  length_ = length;
}

absl::Status BlockTable::Fork(Position length, BlockPool* pool, BlockTable* child,
                              std::vector<BlockCopy>* copies) const {
  TR_CHECK(length >= 0 && length <= length_) << "at " << length << " of " << length_;
  TR_CHECK(child->length_ == 0 && child->block_size_ == block_size_) << "child is not empty";
  const int32_t whole = length / block_size_;
  const int32_t part = length % block_size_;
  std::vector<BlockId> blocks(blocks_.begin(), blocks_.begin() + whole);
  TR_RETURN_IF_ERROR(pool->Allocate(part > 0 ? 1 : 0, &blocks));
  for (int32_t i = 0; i < whole; ++i) pool->AddReference(blocks[i]);
  if (part > 0) copies->push_back({blocks_[whole], blocks.back(), part});
  child->blocks_ = std::move(blocks);
  child->length_ = length;
  return absl::OkStatus();
}

}  // namespace tokenrouter
