// Reads model.safetensors.index.json: which shard file holds which tensor.
// Ownership: plain values. Threads: a free function without state.
// Errors: INVALID_ARGUMENT naming the index and the tensor, for an index that is no JSON, a shard
// that is no plain file name, or more than kMaxShards of them.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace tokenrouter {

inline constexpr size_t kMaxShards = 1024;

// Tensor -> file name of its shard. `path` is for messages.
absl::StatusOr<std::map<std::string, std::string>> ParseSafetensorsIndex(
    std::span<const std::byte> text, const std::string& path);

}  // namespace tokenrouter
