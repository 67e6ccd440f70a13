#include "libs/torch_engine/cpu/xnn_linear.h"

#include <xnnpack.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

static_assert(sizeof(xnn_quantization_params) == sizeof(int64_t));
static_assert(XnnLinear::kInputSlack * sizeof(float) >= XNN_EXTRA_BYTES);

constexpr float kNoLimit = std::numeric_limits<float>::infinity();
constexpr float kInt8Limit = 127.0f;
// Weight rows a thread dequantizes at a time.
constexpr int64_t kReadRows = 16;

absl::Status ToStatus(xnn_status status, std::string_view what) {
  if (status == xnn_status_success) return absl::OkStatus();
  const std::string message = absl::StrCat("XNNPACK: ", absl::string_view(what.data(), what.size()),
                                           " failed with status ", static_cast<int>(status));
  if (status == xnn_status_out_of_memory) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

void Must(xnn_status status, const char* what) {
  TR_CHECK(status == xnn_status_success) << what << ": XNNPACK status " << static_cast<int>(status);
}

absl::Status Initialize() {
  static const xnn_status status = xnn_initialize(nullptr);
  return ToStatus(status, "initialize");
}

// Symmetric: w = scale * q with q in [-127, 127], the largest magnitude on the edge.
float QuantizeRow(std::span<const float> row, int8_t* out) {
  float largest = 0.0f;
  for (const float value : row) largest = std::max(largest, std::fabs(value));
  const float scale = largest > 0.0f ? largest / kInt8Limit : 1.0f;
  for (size_t i = 0; i < row.size(); ++i) {
    out[i] =
        static_cast<int8_t>(std::clamp(std::nearbyint(row[i] / scale), -kInt8Limit, kInt8Limit));
  }
  return scale;
}

// Calls use(first row, rows) for groups of kReadRows consecutive rows on all threads.
template <typename Use>
void ForRowGroups(int64_t rows, ThreadPool* pool, const Use& use) {
  pool->For((rows + kReadRows - 1) / kReadRows, [&](int64_t group, int) {
    const int64_t first = group * kReadRows;
    use(first, std::min(kReadRows, rows - first));
  });
}

}  // namespace

std::string_view WeightFormatName(WeightFormat format) {
  return format == WeightFormat::kInt8 ? "int8" : "fp32";
}

void XnnOperatorDeleter::operator()(xnn_operator* op) const { xnn_delete_operator(op); }

absl::StatusOr<std::unique_ptr<XnnActivations>> XnnActivations::Create(int64_t max_rows,
                                                                       int64_t max_inputs) {
  TR_RETURN_IF_ERROR(Initialize());
  std::unique_ptr<XnnActivations> scratch(new XnnActivations());
  xnn_operator_t op = nullptr;
  TR_RETURN_IF_ERROR(ToStatus(xnn_create_convert_nc_f32_qd8(0, &op), "create convert to int8"));
  scratch->convert_.reset(op);
  scratch->values_.resize(max_rows * max_inputs + XNN_EXTRA_BYTES);
  scratch->parameters_.resize(max_rows + XNN_EXTRA_QUANTIZATION_PARAMS);
  return scratch;
}

absl::StatusOr<std::unique_ptr<XnnLinear>> XnnLinear::Pack(int64_t inputs, int64_t outputs,
                                                           WeightFormat format,
                                                           const WeightRowReader& read,
                                                           std::span<const float> bias,
                                                           ThreadPool* pool) {
  TR_RETURN_IF_ERROR(Initialize());
  TR_CHECK(bias.empty() || static_cast<int64_t>(bias.size()) == outputs);
  std::unique_ptr<XnnLinear> linear(new XnnLinear(inputs, outputs, format));
  const int64_t row_bytes = inputs * (format == WeightFormat::kInt8 ? 1 : sizeof(float));
  const int64_t slice_rows = std::max<int64_t>(kReadRows, kMaxSliceBytes / row_bytes);
  for (int64_t first = 0; first < outputs; first += slice_rows) {
    TR_RETURN_IF_ERROR(linear->PackSlice(first, std::min(slice_rows, outputs - first), read,
                                         bias.empty() ? nullptr : bias.data() + first, pool));
  }
  return linear;
}

absl::Status XnnLinear::PackSlice(int64_t first, int64_t count, const WeightRowReader& read,
                                  const float* bias, ThreadPool* pool) {
  xnn_operator_t op = nullptr;
  if (format_ == WeightFormat::kFp32) {
    std::vector<float> rows(count * inputs_);
    ForRowGroups(count, pool, [&](int64_t row, int64_t n) {
      read(first + row, n, std::span(rows).subspan(row * inputs_, n * inputs_));
    });
    TR_RETURN_IF_ERROR(ToStatus(
        xnn_create_fully_connected_nc_f32(inputs_, count, inputs_, outputs_, rows.data(), bias,
                                          -kNoLimit, kNoLimit, 0, nullptr, nullptr, &op),
        "pack fp32 weights"));
  } else {
    std::vector<int8_t> rows(count * inputs_);
    std::vector<float> scales(count);
    ForRowGroups(count, pool, [&](int64_t row, int64_t n) {
      std::vector<float> group(n * inputs_);
      read(first + row, n, group);
      for (int64_t i = 0; i < n; ++i) {
        scales[row + i] = QuantizeRow(std::span<const float>(group).subspan(i * inputs_, inputs_),
                                      rows.data() + (row + i) * inputs_);
      }
    });
    TR_RETURN_IF_ERROR(ToStatus(xnn_create_fully_connected_nc_qd8_f32_qc8w(
                                    inputs_, count, inputs_, outputs_, scales.data(), rows.data(),
                                    bias, -kNoLimit, kNoLimit, 0, nullptr, nullptr, &op),
                                "pack int8 weights"));
  }
  slices_.push_back({.first = first, .op = XnnOperator(op)});
  return absl::OkStatus();
}

void XnnLinear::Run(const float* input, int64_t rows, float* output, XnnActivations* scratch,
                    ThreadPool* pool) {
  const bool int8 = format_ == WeightFormat::kInt8;
  int8_t* const values = scratch->values_.data();
  auto* const parameters = reinterpret_cast<xnn_quantization_params*>(scratch->parameters_.data());
  if (int8) {
    TR_CHECK(rows * inputs_ + XNN_EXTRA_BYTES <= static_cast<int64_t>(scratch->values_.size()));
    xnn_operator_t convert = scratch->convert_.get();
    Must(xnn_reshape_convert_nc_f32_qd8(convert, rows, inputs_, inputs_, inputs_, pool->handle()),
         "shape convert");
    Must(xnn_setup_convert_nc_f32_qd8(convert, input, values, parameters), "set up convert");
    Must(xnn_run_operator(convert, pool->handle()), "convert");
  }
  for (Slice& slice : slices_) {
    xnn_operator_t op = slice.op.get();
    if (slice.shaped_rows != rows) {
      Must(int8 ? xnn_reshape_fully_connected_nc_qd8_f32_qc8w(op, rows, pool->handle())
                : xnn_reshape_fully_connected_nc_f32(op, rows, pool->handle()),
           "shape linear");
      slice.shaped_rows = rows;
    }
    float* const out = output + slice.first;
    Must(int8 ? xnn_setup_fully_connected_nc_qd8_f32_qc8w(op, values, out, parameters)
              : xnn_setup_fully_connected_nc_f32(op, input, out),
         "set up linear");
    Must(xnn_run_operator(op, pool->handle()), "linear");
  }
}

}  // namespace tokenrouter
