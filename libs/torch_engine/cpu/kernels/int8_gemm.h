// Products of int8 rows and int8 weights on the dot-product instructions of newer processors, which
// the XNNPACK inside libtorch is built without: about twice its rate from a few rows on.
// Ownership: nothing is kept. Threads: pure functions; callers split panels among threads.
// Units: a panel is kPanelOutputs outputs with all their weights, four inputs of each output
// adjacent: {inputs / 4, kPanelOutputs, 4}. Outputs beyond the matrix are padding with weight 0.
// Identity: sums are exact integers, so the bits of a row never depend on the rows beside it.
#pragma once

#include <cstdint>

#include "libs/torch_engine/cpu/kernels/kernel_table.h"

namespace tokenrouter {

inline constexpr int kPanelOutputs = 32;
// Inputs come in groups of four, and their sums must fit into 32 bits.
inline constexpr int64_t kInt8InputGroup = 4;
inline constexpr int64_t kMaxInt8Inputs = 65536;

// One panel applied to `rows` input rows.
struct Int8PanelItem {
  const uint8_t* input;                 // {rows, inputs}, each value 128 above the quantized one.
  const RowQuantization* quantization;  // Of each row, of the quantized values.
  const int8_t* weights;                // The panel.
  const int32_t* weight_sums;           // Over the inputs, per output.
  const float* weight_scales;           // Per output.
  const float* bias;                    // Per output.
  float* output;                        // {rows, outputs}, output_stride apart.
  int64_t rows;
  int64_t inputs;
  int64_t outputs;  // At most kPanelOutputs are written.
  int64_t output_stride;
};

struct Int8Gemm {
  const char* name;  // "avx512vnni".
  void (*panel)(const Int8PanelItem& item);
};

const Int8Gemm& Avx512VnniGemm();
// Null when this processor has no such instructions.
const Int8Gemm* UsableInt8Gemm();

}  // namespace tokenrouter
