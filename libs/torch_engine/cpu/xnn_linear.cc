#include "libs/torch_engine/cpu/xnn_linear.h"

#include <xnnpack.h>

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

// Inputs reach XNNPACK as our RowQuantization.
static_assert(sizeof(xnn_quantization_params) == sizeof(RowQuantization) &&
              offsetof(xnn_quantization_params, scale) == offsetof(RowQuantization, scale));
static_assert(XnnLinear::kInputSlack * sizeof(float) >= XNN_EXTRA_BYTES);

constexpr float kNoLimit = std::numeric_limits<float>::infinity();
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
                                                           WeightFormat format, ThreadPool* pool) {
  static const xnn_status initialized = xnn_initialize(nullptr);
  TR_RETURN_IF_ERROR(ToStatus(initialized, "initialize"));
  const int64_t outputs = weights.outputs;
  std::unique_ptr<XnnLinear> linear(new XnnLinear(weights.inputs, outputs, format));
  const bool int8 = format == WeightFormat::kInt8;
  const int64_t step = SliceRows(outputs, weights.inputs * (int8 ? 1 : sizeof(float)));
  for (int64_t first = 0; first < outputs; first += step) {
    linear->slices_.push_back(
        {.first = first, .count = std::min(step, outputs - first), .op = nullptr});
  }
  std::vector<absl::Status> statuses(linear->slices_.size());
  pool->For(static_cast<int64_t>(statuses.size()), outputs * weights.inputs, [&](int64_t i, int) {
    Slice* const slice = &linear->slices_[i];
    statuses[i] = int8 ? linear->PackInt8(weights, slice) : linear->PackFp32(weights, slice);
  });
  for (const absl::Status& status : statuses) TR_RETURN_IF_ERROR(status);
  return linear;
}

absl::Status XnnLinear::PackInt8(const WeightRows& weights, Slice* slice) const {
  std::vector<int8_t> rows(slice->count * inputs_);
  std::vector<float> scales(slice->count), row(inputs_);
  for (int64_t i = 0; i < slice->count; ++i) {
    weights.read(slice->first + i, 1, row);
    scales[i] = QuantizeWeights(row, rows.data() + i * inputs_);
  }
  const float* const bias = weights.bias.empty() ? nullptr : weights.bias.data() + slice->first;
  xnn_operator_t op = nullptr;
  const xnn_status status = xnn_create_fully_connected_nc_qd8_f32_qc8w(
      inputs_, slice->count, inputs_, outputs_, scales.data(), rows.data(), bias, -kNoLimit,
      kNoLimit, 0, nullptr, nullptr, &op);
  slice->op.reset(op);
  return ToStatus(status, "pack int8 weights");
}

absl::Status XnnLinear::PackFp32(const WeightRows& weights, Slice* slice) const {
  std::vector<float> rows(slice->count * inputs_);
  weights.read(slice->first, slice->count, rows);
  const float* const bias = weights.bias.empty() ? nullptr : weights.bias.data() + slice->first;
  xnn_operator_t op = nullptr;
  const xnn_status status =
      xnn_create_fully_connected_nc_f32(inputs_, slice->count, inputs_, outputs_, rows.data(), bias,
                                        -kNoLimit, kNoLimit, 0, nullptr, nullptr, &op);
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
    RunInt8(&slices_[i], quantized.values(), quantized.rows(), rows, output);
  });
}

void XnnLinear::RunInt8(Slice* slice, const int8_t* input, const RowQuantization* quantization,
                        int64_t rows, float* output) const {
  xnn_operator_t op = slice->op.get();
  if (slice->shaped_rows != rows) {
    Must(xnn_reshape_fully_connected_nc_qd8_f32_qc8w(op, rows, nullptr), "shape linear");
    slice->shaped_rows = rows;
  }
  Must(xnn_setup_fully_connected_nc_qd8_f32_qc8w(
           op, input, output + slice->first,
           reinterpret_cast<const xnn_quantization_params*>(quantization)),
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
