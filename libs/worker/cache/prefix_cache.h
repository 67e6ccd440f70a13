// PrefixCache keeps the KV of closed sequences and lets new ones start from it: the next chat turn
// of a conversation, another request with the same system prompt, or a request that comes back
// after a failover computes only the ids that no sequence has computed yet. Every allocation and
// release of KV between the core and the engine passes through it. Sharing: full blocks of
// committed ids are shared within one tenant (prefix_index.h), from cached and from live sequences
// alike. Results do not change, since the engine's results do not depend on how ids were cut into
// steps. Eviction: blocks that only cached sequences hold count as free: MakeFree takes the last
// blocks of the least recently used sequence, then those before, then the next sequence's. A long
// prefix that many sequences share is therefore evicted last. A live sequence never ends inside a
// block that it shares: cutting goes back to the start of that block, so that a step never needs a
// copy that its plan did not count. Ownership: the engine must outlive it. Threads: not
// thread-safe; lives on the engine's owner loop. Cost: O(blocks of the prompt) at a start, O(new
// blocks) after a step.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "libs/inference/engine.h"
#include "libs/tokens/token_types.h"
#include "libs/worker/cache/prefix_index.h"

namespace tokenrouter {

// Bounds what cached sequences cost beside their blocks.
inline constexpr size_t kMaxCachedSequences = 1024;

class PrefixCache {
 public:
  struct Counters {
    uint64_t lookup_ids = 0;  // Of sequences that started.
    uint64_t hit_ids = 0;     // Of these, found in KV.
    uint64_t evictions = 0;   // Cached blocks evicted, for free blocks or for the bound above.
  };

  // Not enabled: closed sequences are released and nothing is shared.
  PrefixCache(Engine* engine, bool enabled);

  // ---- live sequences ----
  // Ids at the start of `ids` that the tenant has in KV, in whole blocks.
  Position Known(const std::string& tenant, std::span<const TokenId> ids) const {
    return index_.Find(tenant, ids).blocks * block_size_;
  }
  // A sequence without KV is about to run `ids`: it gets the longest prefix of at most `most` ids
  // that the tenant has in KV, in whole blocks. Returns its length.
  Position Start(SequenceId sequence, const std::string& tenant, std::span<const TokenId> ids,
                 Position most);
  // The first `committed` ids of the sequence are committed; those of them that are in KV may be
  // shared from now on.
  void Settle(SequenceId sequence, const std::string& tenant, std::span<const TokenId> committed);
  // Drops the KV from `length` on, and up to one block before it.
  void Cut(SequenceId sequence, Position length);
  // Frees the KV of a live sequence, which may start again.
  void Drop(SequenceId sequence);
  // The sequence is closed: its committed part becomes a cached sequence under its id.
  void Close(SequenceId sequence);

  // ---- blocks ----
  // Blocks that no sequence holds, and those that only cached sequences hold.
  int64_t free_blocks() const {
    return engine_->unallocated_blocks() + engine_->reclaimable_blocks();
  }
  // Held by cached sequences only.
  int64_t cached_blocks() const { return engine_->reclaimable_blocks(); }
  // Evicts until the engine has that many free blocks, or nothing is cached any more.
  void MakeFree(int64_t blocks);
  // Evicts everything; false when there was nothing.
  bool Clear();

  size_t cached_sequences() const { return used_.size(); }
  const Counters& counters() const { return counters_; }

 private:
  // The blocks that a live sequence shares.
  struct Sharing {
    int32_t blocks = 0;  // Number of its first blocks that others may hold too.
    SequenceId source;   // The sequence it started from; 0: none.
  };
  using UseOrder = std::list<SequenceId>;  // The least recently used one comes first.

  bool IsCached(SequenceId sequence) const { return cached_.contains(sequence); }
  void Touch(SequenceId sequence);
  void EvictLastBlock(SequenceId sequence);
  void Release(SequenceId sequence);

  Engine* const engine_;
  const bool enabled_;
  const int32_t block_size_;
  PrefixIndex index_;
  absl::flat_hash_map<SequenceId, Sharing> sharing_;
  UseOrder used_;
  absl::flat_hash_map<SequenceId, UseOrder::iterator> cached_;
  Counters counters_;
};

}  // namespace tokenrouter
