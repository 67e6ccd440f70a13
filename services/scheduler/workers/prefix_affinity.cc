#include "services/scheduler/workers/prefix_affinity.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "absl/types/span.h"

namespace tokenrouter {

std::vector<uint64_t> PrefixKeys(const std::string& tenant, std::span<const TokenId> ids) {
  std::vector<uint64_t> keys(std::min(ids.size() / kPrefixChunk, kMaxPrefixKeys));
  uint64_t key = absl::HashOf(tenant);
  for (size_t i = 0; i < keys.size(); ++i) {
    key = absl::HashOf(key, absl::MakeConstSpan(ids.data() + i * kPrefixChunk, kPrefixChunk));
    keys[i] = key;
  }
  return keys;
}

void SentPrefixes::Add(std::span<const uint64_t> keys) {
  // In reverse, so that the start of a prompt is forgotten last.
  for (size_t i = keys.size(); i > 0; --i) {
    const auto [position, is_new] = positions_.try_emplace(keys[i - 1]);
    if (is_new) {
      position->second = order_.insert(order_.end(), keys[i - 1]);
    } else {
      order_.splice(order_.end(), order_, position->second);
    }
  }
  while (order_.size() > kMaxSentPrefixes) {
    positions_.erase(order_.front());
    order_.pop_front();
  }
}

size_t SentPrefixes::Known(std::span<const uint64_t> keys) const {
  size_t known = 0;
  while (known < keys.size() && positions_.contains(keys[known])) ++known;
  return known;
}

int32_t PrefixWorth(const SentPrefixes& sent, std::span<const uint64_t> keys) {
  if (keys.empty()) return 0;
  return static_cast<int32_t>(kPrefixWorth * sent.Known(keys) / keys.size());
}

}  // namespace tokenrouter
