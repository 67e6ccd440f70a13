// The engine's own arithmetic, one table of functions per instruction set. Everything a layer does
// beside its matrices is here.
// Ownership: nothing is kept. Threads: pure functions; callers split rows and heads among threads.
// Units: floats; counts are numbers of floats unless named otherwise. No pointer needs alignment.
// Identity: the result for one row, or for one query, has the same bits however calls are cut,
// within one table. Tables of different instruction sets differ in the last bits.
#pragma once

#include <cstdint>
#include <span>

namespace tokenrouter {

// Tokens of a KV block: attention reduces block by block over absolute positions.
inline constexpr int kKvBlockTokens = 32;
// The largest head the kernels keep on their stack.
inline constexpr int kMaxHeadDim = 256;
// Values of one token are stored padded to whole vectors of this many floats.
inline constexpr int kValuePadding = 16;

constexpr int64_t PaddedHeadDim(int64_t head_dim) {
  return (head_dim + kValuePadding - 1) / kValuePadding * kValuePadding;
}
// Floats of one (block, kv head): keys transposed {head_dim, kKvBlockTokens}, then values
// {kKvBlockTokens, PaddedHeadDim}.
constexpr int64_t KvTileFloats(int64_t head_dim) {
  return kKvBlockTokens * (head_dim + PaddedHeadDim(head_dim));
}

// Consecutive tokens of one sequence attending with the query heads that share one kv head.
struct AttentionItem {
  const float* queries;  // {tokens, group, head_dim}, token_stride apart.
  float* output;         // The same shape, output_stride apart.
  int64_t token_stride;
  int64_t output_stride;
  int tokens;
  int group;  // Query heads per kv head.
  int head_dim;
  int32_t first;          // Position of the first token; token i sees positions 0 .. first + i,
  int32_t window;         // of them only the last `window`; 0: all.
  const float* kv;        // Tile of this kv head in block 0.
  int64_t block_stride;   // From one block's tile to the next block's.
  const int32_t* blocks;  // blocks[i] holds positions [i, i + 1) * kKvBlockTokens.
  float scale;            // Scores are multiplied by it.
};

// How a row of floats was quantized: x = scale * (q - zero_point). XNNPACK reads it as it is.
struct RowQuantization {
  int32_t zero_point;
  float scale;
};

struct KernelTable {
  const char* name;  // "avx512", "avx2", "scalar".
  // out = x / rms(x) * weight. `out` may be `x`.
  void (*rms_norm)(const float* x, const float* weight, float epsilon, int64_t count, float* out);
  // x += y.
  void (*add)(float* x, const float* y, int64_t count);
  // out = gate * sigmoid(gate) * up.
  void (*swiglu)(const float* gate, const float* up, int64_t count, float* out);
  // Turns channel i with channel i + half by angle i, for i < half.
  void (*rotate)(float* head, const float* cosines, const float* sines, int64_t half);
  // Quantizes to [-128, 127] by the row's own range, 0 included and kept exact. Each byte is then
  // xored with `flip`: 0x80 adds 128 to every value and makes it unsigned.
  RowQuantization (*quantize)(const float* x, int64_t count, uint8_t flip, int8_t* out);
  void (*attend)(const AttentionItem& item);
};

// Writes the key and value of one token into slot [0, kKvBlockTokens) of a tile.
void StoreKeyValue(const float* key, const float* value, int head_dim, int slot, float* tile);

const KernelTable& ScalarKernels();
const KernelTable& Avx2Kernels();
const KernelTable& Avx512Kernels();
// The tables this processor can run, best first; the scalar one is always last.
std::span<const KernelTable* const> UsableKernels();

}  // namespace tokenrouter
