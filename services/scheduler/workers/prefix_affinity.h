// Which worker probably still has the KV of a prompt's prefix: for each worker the scheduler
// remembers the prefixes that it opened there last. A wrong guess costs nothing but speed, because
// only the worker knows what it holds (libs/worker/cache/prefix_cache.h).
// Ownership: SentPrefixes by value in AttachedWorker. Threads: lives on the scheduler's loop.
// Units: a key is a hash of the tenant and of all ids up to the end of a chunk of kPrefixChunk ids.
// Cost: O(chunks of the prompt), at most kMaxPrefixKeys.
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
// The most chunks of a prompt that are compared.
inline constexpr size_t kMaxPrefixKeys = 512;
// The most keys kept for one worker; the least recently used are forgotten.
inline constexpr size_t kMaxSentPrefixes = 16384;
// A worker that holds a whole prompt may have up to this many sequences more than others and is
// still preferred.
inline constexpr int32_t kPrefixWorth = 4;

// The keys of every full chunk, in order.
std::vector<uint64_t> PrefixKeys(const std::string& tenant, std::span<const TokenId> ids);

class SentPrefixes {
 public:
  void Add(std::span<const uint64_t> keys);
  // How many of the first keys were sent, without a gap.
  size_t Known(std::span<const uint64_t> keys) const;
  size_t size() const { return order_.size(); }

 private:
  using Order = std::list<uint64_t>;  // The least recently used first.
  Order order_;
  absl::flat_hash_map<uint64_t, Order::iterator> positions_;
};

// How many sequences more than others a worker may have for these keys: up to kPrefixWorth.
int32_t PrefixWorth(const SentPrefixes& sent, std::span<const uint64_t> keys);

}  // namespace tokenrouter
