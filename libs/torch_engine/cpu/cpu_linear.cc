#include "libs/torch_engine/cpu/cpu_linear.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/torch_engine/cpu/panel_linear.h"
#include "libs/torch_engine/cpu/xnn_linear.h"

namespace tokenrouter {
namespace {

// Weights of a slice: small beside a core's second-level cache, so that all rows of a long prompt
// meet a slice while it is there, and large beside the cost of handing it out.
constexpr int64_t kSliceBytes = 256 << 10;
// Small matrices are cut finer, so that every thread gets a share.
constexpr int64_t kMinSlices = 16;
// Input values that one item quantizes.
constexpr int64_t kQuantizedValues = 16384;
// Kernels may read this far behind the last row.
constexpr int64_t kExtraRows = 16;
constexpr int64_t kExtraBytes = 64;

}  // namespace

QuantizedRows::QuantizedRows(int64_t max_rows, int64_t max_inputs)
    : values_(max_rows * max_inputs + kExtraBytes), rows_(max_rows + kExtraRows) {}

void QuantizedRows::Quantize(const float* input, int64_t rows, int64_t inputs, uint8_t flip,
                             const KernelTable& kernels, ThreadPool* pool) {
  TR_CHECK(rows > 0 && rows * inputs + kExtraBytes <= static_cast<int64_t>(values_.size()) &&
           rows + kExtraRows <= static_cast<int64_t>(rows_.size()));
  const int64_t part = std::max<int64_t>(1, kQuantizedValues / inputs);
  pool->For((rows + part - 1) / part, rows * inputs, [&](int64_t item, int) {
    for (int64_t r = item * part; r < std::min(rows, (item + 1) * part); ++r) {
      rows_[r] = kernels.quantize(input + r * inputs, inputs, flip, values_.data() + r * inputs);
    }
  });
  std::fill_n(rows_.begin() + rows, kExtraRows, rows_[rows - 1]);
}

absl::StatusOr<std::unique_ptr<CpuLinear>> PackLinear(const WeightRows& weights,
                                                      WeightFormat format,
                                                      const CpuLinearContext& context) {
  TR_CHECK(weights.bias.empty() || static_cast<int64_t>(weights.bias.size()) == weights.outputs);
  if (format == WeightFormat::kInt4 && weights.inputs % kInt4Block != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor '", weights.name, "' has ", weights.inputs,
        " inputs, int4 weights need a multiple of ", kInt4Block, "; use the weight format int8"));
  }
  if (context.panel_gemm != nullptr && PanelLinear::Fits(weights, format)) {
    return PanelLinear::Pack(weights, format, context);
  }
  return XnnLinear::Pack(weights, format, context);
}

int64_t SliceRows(int64_t outputs, int64_t row_bytes) {
  const int64_t rows = std::min(kSliceBytes / row_bytes, outputs / kMinSlices);
  return std::max(kSliceGranule, rows / kSliceGranule * kSliceGranule);
}

}  // namespace tokenrouter
