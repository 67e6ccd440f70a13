// PrefixCache keeps the KV of closed sequences and lets new ones start from it: the next turn of a
// conversation, another request with the same system prompt, or a request that comes back after a
// failover runs only the ids that nobody has run yet. It stands between the core and the engine
// wherever KV comes and goes.
// What is shared: full blocks of committed ids, within one tenant (prefix_index.h), from cached and
// from live sequences alike. Results do not change: the engine's identity does not depend on how
// ids were cut into steps.
// Pressure: blocks that only cached sequences hold are free for whoever needs them: MakeFree takes
// the last blocks of the sequence that was not used for the longest time, then those before, then
// the next sequence's. So a long prefix that many share is the last to go.
// A live sequence never ends inside a block that it shares: cutting goes back to the start of that
// block, so that a step never needs a copy that its plan did not count.
// Ownership: the engine must outlive it. Threads: not thread-safe; lives on the engine's owner
// loop. Cost: O(blocks of the prompt) at a start, O(new blocks) after a step.
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
    uint64_t evictions = 0;   // Cached blocks given up, for room or for the bound above.
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
  // Of the sequence's ids, `committed` are settled; those of them that are in KV may be shared from
  // now on.
  void Settle(SequenceId sequence, const std::string& tenant, std::span<const TokenId> committed);
  // Forgets the KV from `length` on, and up to a block before it.
  void Cut(SequenceId sequence, Position length);
  // Frees the KV of a live sequence, which may start again.
  void Drop(SequenceId sequence);
  // The sequence is over: what is settled of it becomes a cached sequence under its id.
  void Close(SequenceId sequence);

  // ---- blocks ----
  // Those that nobody holds, and those that only cached sequences hold.
  int64_t free_blocks() const {
    return engine_->unallocated_blocks() + engine_->reclaimable_blocks();
  }
  // Held by cached sequences only.
  int64_t cached_blocks() const { return engine_->reclaimable_blocks(); }
  // Evicts until the engine has so many free blocks, or nothing is cached any more.
  void MakeFree(int64_t blocks);
  // Evicts everything; false when there was nothing.
  bool Clear();

  size_t cached_sequences() const { return used_.size(); }
  const Counters& counters() const { return counters_; }

 private:
  // What a live sequence shares.
  struct Sharing {
    int32_t blocks = 0;  // So many of its first blocks others may hold too.
    SequenceId source;   // Whom it started from; 0: nobody.
  };
  using UseOrder = std::list<SequenceId>;  // The least recently used first.

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
