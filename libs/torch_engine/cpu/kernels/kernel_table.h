// The engine's own arithmetic, one table of functions per instruction set. Everything a layer does
// beside its matrices is here.
// Ownership: nothing is kept. Threads: pure functions; callers split rows and heads among threads.
// Units: floats; counts are numbers of floats unless named otherwise. No pointer needs alignment.
// Identity: the result for one row, or for one query, has the same bits however calls are cut,
// within one table. Tables of different instruction sets differ in the last bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "libs/torch_engine/cpu/kernels/kv_tile.h"
#include "libs/torch_engine/model/kv_format.h"

namespace tokenrouter {

// The largest head the kernels keep on their stack.
inline constexpr int kMaxHeadDim = 256;
// Attention of a query is reduced in parts of this many absolute positions, and the parts joined
// in order, so that threads may share the parts of one long sequence.
inline constexpr int kAttentionPartTokens = 16 * kKvBlockTokens;

// The result of a query in one part: highest score, sum of weights, padding, then PaddedHeadDim
// sums of values.
constexpr int64_t PartialFloats(int64_t head_dim) {
  return kValuePadding + PaddedHeadDim(head_dim);
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
  const std::byte* kv;    // Tile of this kv head in block 0.
  int64_t block_stride;   // Bytes from one block's tile to the next block's.
  const int32_t* blocks;  // blocks[i] holds positions [i, i + 1) * kKvBlockTokens.
  float scale;            // Scores are multiplied by it.
  // Null: the output is wanted. Otherwise what the queries find in part `part` alone, {tokens,
  // group, PartialFloats}, and nothing is written to `output`.
  float* partial = nullptr;
  int32_t part = 0;

  // The parts that hold a position some query sees: the first, and how many.
  int32_t first_part() const {
    const bool all = window == 0 || window > first;
    return all ? 0 : (first - window + 1) / kAttentionPartTokens;
  }
  int32_t parts() const { return (first + tokens - 1) / kAttentionPartTokens - first_part() + 1; }
};

// How a row of floats was quantized: x = scale * (q - zero_point). XNNPACK reads it as it is.
struct RowQuantization {
  int32_t zero_point;
  float scale;
};

// What touches tiles of one KV format.
struct KvKernels {
  // Writes the key and value of one token into slot [0, kKvBlockTokens) of a tile. Tables of all
  // instruction sets write the same bytes.
  void (*store)(const float* key, const float* value, int head_dim, int slot, std::byte* tile);
  void (*attend)(const AttentionItem& item);
};

struct KernelTable {
  const char* name;  // "avx512", "avx2", "scalar".
  // out = x / rms(x) * weight. `out` may be `x`.
  void (*rms_norm)(const float* x, const float* weight, float epsilon, int64_t count, float* out);
  // x += y.
  void (*add)(float* x, const float* y, int64_t count);
  // out = gate * sigmoid(gate) * up.
  void (*swiglu)(const float* gate, const float* up, int64_t count, float* out);
  // Rotates channel i with channel i + half by angle i, for i < half.
  void (*rotate)(float* head, const float* cosines, const float* sines, int64_t half);
  // Quantizes to [-128, 127] by the row's own range, 0 included and kept exact. Each byte is then
  // xored with `flip`: 0x80 adds 128 to every value and makes it unsigned.
  RowQuantization (*quantize)(const float* x, int64_t count, uint8_t flip, int8_t* out);
  // The output of an item from what its queries found in `parts` parts, first to last:
  // {parts, tokens, group, PartialFloats}.
  void (*join)(const AttentionItem& item, const float* partials, int parts);
  KvKernels fp32_kv;
  KvKernels int8_kv;
  const KvKernels& kv(KvFormat format) const {
    return format == KvFormat::kInt8 ? int8_kv : fp32_kv;
  }
};

const KernelTable& ScalarKernels();
const KernelTable& Avx2Kernels();
const KernelTable& Avx512Kernels();
// The tables this processor can run, best first; the scalar one is always last.
std::span<const KernelTable* const> UsableKernels();

}  // namespace tokenrouter
