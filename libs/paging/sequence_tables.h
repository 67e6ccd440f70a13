// SequenceTables keeps the block tables of all sequences of one engine on one pool. It decides
// where tokens lie; the engine that owns the KV memory performs the copies it reports.
// Ownership: owns the pool and the tables. Pointers of Find are valid until the next non-const
// call.
// Threads: not thread-safe; lives with the engine's owner.
// Units: lengths and counts are tokens, free and needed are blocks.
// Errors: RESOURCE_EXHAUSTED when the pool has too few blocks; nothing is changed then.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "libs/paging/block_pool.h"
#include "libs/paging/block_table.h"
#include "libs/paging/block_types.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

// The number of tokens to add to one sequence.
struct SequenceExtension {
  SequenceId sequence;
  Position count = 0;
};

class SequenceTables {
 public:
  // REQUIRES: total_blocks >= 0, block_size > 0 tokens.
  SequenceTables(BlockCount total_blocks, int32_t block_size);

  int32_t block_size() const { return block_size_; }
  BlockCount total_blocks() const { return pool_.total(); }
  BlockCount unallocated_blocks() const { return pool_.unallocated(); }
  // Blocks that only reclaimable sequences hold.
  BlockCount reclaimable_blocks() const { return pool_.reclaimable(); }
  int64_t sequences() const { return static_cast<int64_t>(tables_.size()); }

  bool Contains(SequenceId sequence) const { return tables_.contains(sequence); }
  // 0 when unknown.
  Position Length(SequenceId sequence) const;
  // Null when unknown.
  const BlockTable* Find(SequenceId sequence) const;

  // Blocks that Extend would take, copies included.
  BlockCount BlocksNeeded(std::span<const SequenceExtension> batch) const;
  // Extends all or none; an unknown sequence starts empty. Appends to `copies` what must be copied
  // before any of the new positions is written. REQUIRES: each sequence at most once in the batch.
  absl::Status Extend(std::span<const SequenceExtension> batch, std::vector<BlockCopy>* copies);
  // Drops everything from `length` on; the sequence stays known. REQUIRES: known and
  // 0 <= length <= Length(sequence), or unknown and length 0.
  void Truncate(SequenceId sequence, Position length);
  // The sequence is only kept to be forked or cut from now on. REQUIRES: known, not reclaimable
  // yet.
  void MarkReclaimable(SequenceId sequence);
  // Releases the sequence; an unknown one is ignored.
  void Release(SequenceId sequence);
  // `child` becomes the first `length` tokens of `parent`, sharing whole blocks; a part of a block
  // is copied. REQUIRES: child unknown, 0 <= length <= Length(parent).
  absl::Status Fork(SequenceId parent, SequenceId child, Position length,
                    std::vector<BlockCopy>* copies);

 private:
  struct Entry {
    BlockTable table;
    uint64_t batch = 0;  // Number of the last batch that extended it; finds repeated sequences.
  };

  int32_t block_size_;
  uint64_t batches_ = 0;
  BlockPool pool_;
  absl::flat_hash_map<SequenceId, Entry> tables_;
};

}  // namespace tokenrouter
