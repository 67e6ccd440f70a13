// Products of int8 rows and int8 or int4 weights. The XNNPACK inside libtorch never uses the
// dot-product instructions of newer processors and unpacks int4 weights again for every few rows.
// Ownership: nothing is kept. Threads: pure functions; callers split panels among threads.
// Units: a panel is kPanelOutputs outputs with all their weights and what belongs to them, one
// piece of memory. Outputs beyond the matrix are padding with weight 0.
// Identity: sums of integers are exact and sums of floats have one order, so the bits of a row
// never depend on the rows beside it, and all tables of one format give equal bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "libs/torch_engine/cpu/kernels/kernel_table.h"

namespace tokenrouter {

inline constexpr int kPanelOutputs = 32;
// Inputs come in groups of four, and their sums must fit into 32 bits.
inline constexpr int64_t kInputGroup = 4;
inline constexpr int64_t kMaxPanelInputs = 65536;
// Int4 weights have one scale per this many inputs.
inline constexpr int64_t kInt4Block = 32;

// An int8 panel: this head, then the weights {inputs / 4, kPanelOutputs, 4}: four inputs of each
// output are adjacent.
struct Int8PanelHead {
  int32_t sums[kPanelOutputs];  // Of the quantized weights over the inputs.
  float scales[kPanelOutputs];
};

// An int4 panel: this head, then inputs / kInt4Block blocks.
struct Int4PanelHead {
  float sums[kPanelOutputs];  // Of the weights over the inputs, in the order of the blocks.
};
struct Int4PanelBlock {
  // As bfloat16: a sixteenth of the scale, because kernels leave a nibble in the upper half of its
  // byte.
  uint16_t scales[kPanelOutputs];
  // [p][o][k]: the low nibble is the weight of input 8 p + k, the high one of input 8 p + 4 + k;
  // both in two's complement.
  uint8_t pairs[kInt4Block / (2 * kInputGroup)][kPanelOutputs][kInputGroup];
};
static_assert(sizeof(Int4PanelBlock) % 64 == 0 && sizeof(Int4PanelHead) % 64 == 0 &&
              sizeof(Int8PanelHead) % 64 == 0);

// One panel applied to `rows` input rows.
struct PanelItem {
  const uint8_t* input;                 // {rows, inputs}, each value 128 above the quantized one.
  const RowQuantization* quantization;  // Of each row, of the quantized values.
  const std::byte* panel;               // Aligned to 64 bytes.
  const float* bias;                    // {kPanelOutputs}
  float* output;                        // {rows, outputs}, output_stride apart.
  int64_t rows;
  int64_t inputs;   // A multiple of kInputGroup; of kInt4Block in int4.
  int64_t outputs;  // At most kPanelOutputs are written.
  int64_t output_stride;
};

struct PanelGemm {
  const char* name;  // "avx512vnni", "avxvnni", "avx2", "scalar".
  void (*int8)(const PanelItem& item);
  void (*int4)(const PanelItem& item);
};

// What the others must equal bit for bit; slow.
const PanelGemm& ScalarPanelGemm();
const PanelGemm& Avx512VnniPanelGemm();
const PanelGemm& AvxVnniPanelGemm();
const PanelGemm& Avx2PanelGemm();
// Those that this processor runs, best first, the scalar one left out; empty without AVX2.
std::span<const PanelGemm* const> UsablePanelGemms();

}  // namespace tokenrouter
