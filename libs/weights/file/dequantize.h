// Turns stored rows into floats: F32, F16, BF16 and the GGUF block types of TensorType.
// Ownership: nothing is kept. Threads: pure functions; callers split the rows of a tensor among
// threads. Units: `out` has as many values as the row; `row` is exactly that many blocks.
// Errors: sizes that do not match are a broken invariant (TR_CHECK): readers checked the tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "libs/weights/file/tensor_view.h"

namespace tokenrouter {

// REQUIRES: out.size() is a multiple of the type's block_values and row.size() the bytes of that
// many blocks. `row` needs no alignment.
void DequantizeRow(TensorType type, std::span<const std::byte> row, std::span<float> out);

float HalfToFloat(uint16_t half);

}  // namespace tokenrouter
