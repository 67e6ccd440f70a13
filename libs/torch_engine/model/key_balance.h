// Channels of a key head differ in size by orders of magnitude in some models (the biases of
// Qwen2), and one scale per key wastes an 8-bit format's range on the largest of them. A factor
// that keys are divided by and queries multiplied by leaves every score what it is, and makes
// channels alike. Folded into weights when they are loaded, it costs nothing.
// Factors are powers of two, so scaling rounds nothing: engines with formats that need no balance
// compute the same bits with and without it. Channels that are rotated together share a factor,
// because their sizes mix as positions grow.
// Threads: pure function. Units: factors by kv head and channel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tokenrouter {

// `sizes`: about how large each channel gets before its rotation, {heads, head_dim}; the first
// `rotary_dim` channels of a head are rotated in halves.
std::vector<float> KeyBalance(std::span<const float> sizes, int64_t head_dim, int64_t rotary_dim);

}  // namespace tokenrouter
