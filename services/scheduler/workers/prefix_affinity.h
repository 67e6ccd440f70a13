// Which worker probably still has the KV of a prompt's start: the scheduler remembers, of each
// worker, the prefixes of what it opened there last. A guess that costs nothing when it is wrong:
// the worker alone knows what it holds (libs/worker/cache/prefix_cache.h). Ownership: SentPrefixes
// by value in AttachedWorker. Threads: lives on the scheduler's loop. Units: keys are hashes of all
// ids up to the end of a chunk of kPrefixChunk ids, and of the tenant. Cost: O(chunks of the
// prompt), at most kMaxPrefixKeys.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

inline constexpr int kPrefixChunk = 32;
// Chunks of a prompt that are looked at.
inline constexpr size_t kMaxPrefixKeys = 512;
// Of one worker; the least recently used are forgotten.
inline constexpr size_t kMaxSentPrefixes = 16384;
// So many more sequences than others a worker may have that holds all of a prompt, and still gets
// it.
inline constexpr int32_t kPrefixWorth = 4;

// The keys of every full chunk, the first one first.
std::vector<uint64_t> PrefixKeys(const std::string& tenant, std::span<const TokenId> ids);

class SentPrefixes {
 public:
  void Add(std::span<const uint64_t> keys);
  // So many of the first keys were sent.
  size_t Known(std::span<const uint64_t> keys) const;
  size_t size() const { return order_.size(); }

 private:
  using Order = std::list<uint64_t>;  // The least recently used first.
  Order order_;
  absl::flat_hash_map<uint64_t, Order::iterator> reservations_;
};

// Sequences that a worker's load may be above that of others for these keys: up to kPrefixWorth.
int32_t PrefixWorth(const SentPrefixes& sent, std::span<const uint64_t> keys);

}  // namespace tokenrouter
