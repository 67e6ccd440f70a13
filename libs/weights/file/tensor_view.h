// A tensor as it lies in a weight file: name, stored type, shape and its bytes. No torch.
// Ownership: `bytes` points into the mapped file and must not outlive it.
// Threads: plain values.
// Units: a shape is row-major, outermost first, so {rows, columns}; GGUF's reversed order is undone
// by its reader. A row is the innermost dimension and is what quantisation blocks divide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokenrouter {

enum class TensorType {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

// How a type is stored: `block_values` consecutive values of a row take `block_bytes` bytes.
struct TensorTypeLayout {
  std::string_view name;
  int64_t block_values;
  int64_t block_bytes;
};

const TensorTypeLayout& LayoutOf(TensorType type);

// Names of all supported types in one string, for error messages.
std::string SupportedTensorTypes();

struct TensorView {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;

  int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const;
  // Bytes of one row: columns() is a whole number of blocks in every tensor a reader hands out.
  int64_t row_bytes() const;
};

// Size in bytes of a tensor, or nothing when a dimension is not positive, the row is not a whole
// number of blocks, or the product does not fit in 63 bits.
std::optional<int64_t> TensorBytes(TensorType type, std::span<const int64_t> shape);

// "[49152, 576]", for messages.
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace tokenrouter
