// The vocabulary of paged KV memory.
#pragma once

#include <cstdint>

namespace tokenrouter {

// A block of the KV cache: 0 <= id < total blocks of its pool, its index in the engine's memory.
using BlockId = int32_t;

// A number of blocks, never of tokens.
using BlockCount = int64_t;

// Blocks that a history of so many tokens fills.
constexpr BlockCount BlocksFor(int64_t tokens, int32_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

// A copy that the engine must perform before it writes anything of the step or fork that reported
// it: the first `tokens` tokens of `source` become those of `destination`.
struct BlockCopy {
  BlockId source = 0;
  BlockId destination = 0;
  int32_t tokens = 0;
  friend bool operator==(const BlockCopy&, const BlockCopy&) = default;
};

}  // namespace tokenrouter
