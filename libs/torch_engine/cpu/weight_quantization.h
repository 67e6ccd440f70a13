// How weights become small integers, the same way for every kernel and on every machine.
// Ownership: nothing is kept. Threads: pure functions. Units: floats as the model has them.
#pragma once

#include <cstdint>
#include <span>

#include "libs/torch_engine/cpu/kernels/panel_gemm.h"

namespace tokenrouter {

// Symmetric int8: row = result * out with out in [-127, 127], the largest magnitude on the edge.
float QuantizeInt8Row(std::span<const float> row, int8_t* out);

// The range [-8, 7] is lopsided: with a scale below 0 it reaches further up than down.
enum class ScaleSign { kPositive, kAny };

// Symmetric int4: block = scale * out with out in [-8, 7]. The scale is the one of a few candidates
// that has the least squared error, as bfloat16 bits; it is normal and so is a sixteenth of it.
uint16_t QuantizeInt4Block(std::span<const float, kInt4Block> block, ScaleSign sign, int8_t* out);

float FloatOfBfloat16(uint16_t bits);

}  // namespace tokenrouter
