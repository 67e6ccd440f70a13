#include "libs/weights/file/tensor_view.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

// Indexed by TensorType.
constexpr TensorTypeLayout kLayouts[] = {
    {"F32", 1, 4},      {"F16", 1, 2},      {"BF16", 1, 2},     {"Q8_0", 32, 34},
    {"Q4_0", 32, 18},   {"Q4_1", 32, 20},   {"Q5_0", 32, 22},   {"Q5_1", 32, 24},
    {"Q4_K", 256, 144}, {"Q5_K", 256, 176}, {"Q6_K", 256, 210},
};

}  // namespace

const TensorTypeLayout& LayoutOf(TensorType type) {
  const auto index = static_cast<size_t>(type);
  TR_CHECK(index < std::size(kLayouts)) << "tensor type " << index;
  return kLayouts[index];
}

std::string SupportedTensorTypes() {
  return absl::StrJoin(kLayouts, ", ", [](std::string* out, const TensorTypeLayout& layout) {
    out->append(layout.name);
  });
}

int64_t TensorView::rows() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

int64_t TensorView::row_bytes() const {
  const TensorTypeLayout& layout = LayoutOf(type);
  return columns() / layout.block_values * layout.block_bytes;
}

std::optional<int64_t> TensorBytes(TensorType type, std::span<const int64_t> shape) {
  const TensorTypeLayout& layout = LayoutOf(type);
  const int64_t columns = shape.empty() ? 1 : shape.back();
  if (columns <= 0 || columns % layout.block_values != 0) return std::nullopt;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(columns / layout.block_values, layout.block_bytes, &bytes)) {
    return std::nullopt;
  }
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    if (shape[i] <= 0 || __builtin_mul_overflow(bytes, shape[i], &bytes)) return std::nullopt;
  }
  return bytes;
}

std::string ShapeText(std::span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape.begin(), shape.end(), ", "), "]");
}

}  // namespace tokenrouter
