#include "libs/torch_engine/cpu/xnn_linear.h"

#include <xnnpack.h>

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/torch_engine/cpu/weight_quantization.h"

namespace tokenrouter {
namespace {

// Inputs reach XNNPACK as our RowQuantization.
static_assert(sizeof(xnn_quantization_params) == sizeof(RowQuantization) &&
              offsetof(xnn_quantization_params, scale) == offsetof(RowQuantization, scale));
static_assert(XnnLinear::kInputSlack * sizeof(float) >= XNN_EXTRA_BYTES);

// XNNPACK keeps int4 weights unsigned, 8 above their value.
constexpr uint8_t kInt4Zero = 8;
// XNNPACK checks scales even where it finds packed weights.
constexpr uint16_t kBfloat16One = 0x3F80;
constexpr float kNoLimit = std::numeric_limits<float>::infinity();

// The approximate bytes of one row of weights.
int64_t RowBytes(int64_t inputs, WeightFormat format) {
  switch (format) {
    case WeightFormat::kInt8:
      return inputs;
    case WeightFormat::kInt4:
      return inputs / 2 + inputs / kInt4Block * static_cast<int64_t>(sizeof(uint16_t));
    case WeightFormat::kFp32:
      return inputs * static_cast<int64_t>(sizeof(float));
  }
  return inputs;
}

absl::Status ToStatus(xnn_status status, const char* what) {
  if (status == xnn_status_success) return absl::OkStatus();
  const std::string message =
      absl::StrCat("XNNPACK: ", what, " failed with status ", static_cast<int>(status));
  if (status == xnn_status_out_of_memory) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

void Must(xnn_status status, const char* what) {
  TR_CHECK(status == xnn_status_success) << what << ": XNNPACK status " << static_cast<int>(status);
}

}  // namespace

void XnnOperatorDeleter::operator()(xnn_operator* op) const { xnn_delete_operator(op); }

absl::StatusOr<std::unique_ptr<XnnLinear>> XnnLinear::Pack(const WeightRows& weights,
                                                           WeightFormat format,
                                                           const CpuLinearContext& context) {
  static const xnn_status initialized = xnn_initialize(nullptr);
  TR_RETURN_IF_ERROR(ToStatus(initialized, "initialize"));
  const int64_t outputs = weights.outputs;
  std::unique_ptr<XnnLinear> linear(new XnnLinear(weights.inputs, outputs, format));
  const int64_t step = SliceRows(outputs, RowBytes(weights.inputs, format));
  for (int64_t first = 0; first < outputs; first += step) {
    const int64_t count = std::min(step, outputs - first);
    const std::string name =
        absl::StrCat("xnnpack ", std::string(WeightFormatName(format)), " ", weights.inputs, " ",
                     first, "+", count, " ", weights.name);
    linear->slices_.push_back({.first = first,
                               .count = count,
                               .packed = std::make_unique<XnnPacked>(name, context.memory),
                               .op = nullptr});
  }
  std::vector<absl::Status> statuses(linear->slices_.size());
  const auto slices = static_cast<int64_t>(statuses.size());
  context.pool->For(slices, outputs * weights.inputs, [&](int64_t i, int) {
    statuses[i] = linear->PackSlice(weights, &linear->slices_[i]);
  });
  for (const absl::Status& status : statuses) TR_RETURN_IF_ERROR(status);
  return linear;
}

absl::Status XnnLinear::PackSlice(const WeightRows& weights, Slice* slice) const {
  switch (format_) {
    case WeightFormat::kInt8:
      return PackInt8(weights, slice);
    case WeightFormat::kInt4:
      return PackInt4(weights, slice);
    case WeightFormat::kFp32:
      return PackFp32(weights, slice);
  }
  return absl::InternalError("unknown weight format");
}

absl::Status XnnLinear::PackInt8(const WeightRows& weights, Slice* slice) const {
  std::vector<int8_t> rows(slice->count * inputs_);
  std::vector<float> scales(slice->count, 1.0f), row(inputs_);
  for (int64_t i = 0; i < slice->count && !slice->packed->found(); ++i) {
    weights.read(slice->first + i, 1, row);
    scales[i] = QuantizeInt8Row(row, rows.data() + i * inputs_);
  }
  const float* const bias = weights.bias.empty() ? nullptr : weights.bias.data() + slice->first;
  xnn_operator_t op = nullptr;
  const xnn_status status = xnn_create_fully_connected_nc_qd8_f32_qc8w(
      inputs_, slice->count, inputs_, outputs_, scales.data(), rows.data(), bias, -kNoLimit,
      kNoLimit, 0, nullptr, slice->packed->provider(), &op);
  slice->op.reset(op);
  return ToStatus(status, "pack int8 weights");
}

absl::Status XnnLinear::PackInt4(const WeightRows& weights, Slice* slice) const {
  const int64_t blocks = inputs_ / kInt4Block;
  std::vector<uint8_t> rows(slice->count * inputs_ / 2);
  std::vector<uint16_t> scales(slice->count * blocks, kBfloat16One);
  std::vector<float> row(inputs_);
  int8_t quantized[kInt4Block];
  for (int64_t i = 0; i < slice->count && !slice->packed->found(); ++i) {
    weights.read(slice->first + i, 1, row);
    for (int64_t b = 0; b < blocks; ++b) {
      const std::span<const float, kInt4Block> block(row.data() + b * kInt4Block, kInt4Block);
      // XNNPACK allows only scales above 0.
      scales[i * blocks + b] = QuantizeInt4Block(block, ScaleSign::kPositive, quantized);
      uint8_t* const packed = rows.data() + (i * inputs_ + b * kInt4Block) / 2;
      for (int64_t k = 0; k < kInt4Block; k += 2) {
        packed[k / 2] =
            static_cast<uint8_t>((quantized[k] + kInt4Zero) | (quantized[k + 1] + kInt4Zero) << 4);
      }
    }
  }
  const float* const bias = weights.bias.empty() ? nullptr : weights.bias.data() + slice->first;
  xnn_operator_t op = nullptr;
  const xnn_status status = xnn_create_fully_connected_nc_qd8_f32_qb4w(
      inputs_, slice->count, inputs_, outputs_, kInt4Block, kInt4Zero, scales.data(), rows.data(),
      bias, -kNoLimit, kNoLimit, 0, nullptr, slice->packed->provider(), &op);
  slice->op.reset(op);
  return ToStatus(status, "pack int4 weights");
}

absl::Status XnnLinear::PackFp32(const WeightRows& weights, Slice* slice) const {
  std::vector<float> rows(slice->count * inputs_);
  if (!slice->packed->found()) weights.read(slice->first, slice->count, rows);
  const float* const bias = weights.bias.empty() ? nullptr : weights.bias.data() + slice->first;
  xnn_operator_t op = nullptr;
  const xnn_status status = xnn_create_fully_connected_nc_f32(
      inputs_, slice->count, inputs_, outputs_, rows.data(), bias, -kNoLimit, kNoLimit, 0, nullptr,
      slice->packed->provider(), &op);
  slice->op.reset(op);
  return ToStatus(status, "pack fp32 weights");
}

void XnnLinear::Run(const float* input, int64_t rows, float* output,
                    const CpuLinearContext& context) {
  const auto slices = static_cast<int64_t>(slices_.size());
  const int64_t operations = rows * inputs_ * outputs_;
  if (format_ == WeightFormat::kFp32) {
    context.pool->For(slices, operations,
                      [&](int64_t i, int) { RunFp32(&slices_[i], input, rows, output); });
    return;
  }
  QuantizedRows& quantized = *context.quantized;
  quantized.Quantize(input, rows, inputs_, 0, *context.kernels, context.pool);
  context.pool->For(slices, operations, [&](int64_t i, int) {
    RunQuantized(&slices_[i], quantized.values(), quantized.rows(), rows, output);
  });
}

void XnnLinear::RunQuantized(Slice* slice, const int8_t* input, const RowQuantization* quantization,
                             int64_t rows, float* output) const {
  xnn_operator_t op = slice->op.get();
  const bool int8 = format_ == WeightFormat::kInt8;
  if (slice->shaped_rows != rows) {
    Must(int8 ? xnn_reshape_fully_connected_nc_qd8_f32_qc8w(op, rows, nullptr)
              : xnn_reshape_fully_connected_nc_qd8_f32_qb4w(op, rows, nullptr),
         "shape linear");
    slice->shaped_rows = rows;
  }
  const auto* const quantized = reinterpret_cast<const xnn_quantization_params*>(quantization);
  float* const out = output + slice->first;
  Must(int8 ? xnn_setup_fully_connected_nc_qd8_f32_qc8w(op, input, out, quantized)
            : xnn_setup_fully_connected_nc_qd8_f32_qb4w(op, input, out, quantized),
       "set up linear");
  Must(xnn_run_operator(op, nullptr), "linear");
}

void XnnLinear::RunFp32(Slice* slice, const float* input, int64_t rows, float* output) const {
  xnn_operator_t op = slice->op.get();
  if (slice->shaped_rows != rows) {
    Must(xnn_reshape_fully_connected_nc_f32(op, rows, nullptr), "shape linear");
    slice->shaped_rows = rows;
  }
  Must(xnn_setup_fully_connected_nc_f32(op, input, output + slice->first), "set up linear");
  Must(xnn_run_operator(op, nullptr), "linear");
}

}  // namespace tokenrouter
