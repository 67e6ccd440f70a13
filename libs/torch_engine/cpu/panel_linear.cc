#include "libs/torch_engine/cpu/panel_linear.h"

#include <algorithm>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/torch_engine/cpu/weight_quantization.h"

namespace tokenrouter {
namespace {

// Flipping the sign bit of an int8 adds 128 to it as an unsigned byte.
constexpr uint8_t kAdd128 = 0x80;
// Dividing a normal bfloat16 by 16.
constexpr uint16_t kSixteenthExponent = 4 << 7;

int64_t PanelBytes(int64_t inputs, WeightFormat format) {
  const auto bytes = format == WeightFormat::kInt8
                         ? sizeof(Int8PanelHead) + kPanelOutputs * inputs
                         : sizeof(Int4PanelHead) + inputs / kInt4Block * sizeof(Int4PanelBlock);
  return static_cast<int64_t>(bytes);
}

}  // namespace

bool PanelLinear::Fits(const WeightRows& weights, WeightFormat format) {
  if (format == WeightFormat::kFp32 || weights.inputs > kMaxPanelInputs) return false;
  return weights.inputs % (format == WeightFormat::kInt4 ? kInt4Block : kInputGroup) == 0;
}

absl::StatusOr<std::unique_ptr<PanelLinear>> PanelLinear::Pack(const WeightRows& weights,
                                                               WeightFormat format,
                                                               const CpuLinearContext& context) {
  TR_CHECK(Fits(weights, format));
  std::unique_ptr<PanelLinear> linear(new PanelLinear(weights.inputs, weights.outputs, format));
  std::copy(weights.bias.begin(), weights.bias.end(), linear->bias_.begin());
  const int64_t bytes = linear->panels_ * linear->panel_bytes_;
  const std::string name = absl::StrCat("panels ", std::string(WeightFormatName(format)), " ",
                                        weights.inputs, " ", weights.outputs, " ", weights.name);
  const std::span<const std::byte> packed = context.memory->Find(name);
  if (static_cast<int64_t>(packed.size()) == bytes) {
    linear->panels_memory_ = packed.data();
    return linear;
  }
  TR_ASSIGN_OR_RETURN(std::byte* const memory, context.memory->Allocate(bytes));
  linear->panels_memory_ = memory;
  context.pool->For(linear->panels_, weights.inputs * weights.outputs, [&](int64_t panel, int) {
    std::byte* const out = memory + panel * linear->panel_bytes_;
    if (format == WeightFormat::kInt8) {
      linear->PackInt8(weights, panel, out);
    } else {
      linear->PackInt4(weights, panel, out);
    }
  });
  context.memory->Keep(name, std::span(memory, bytes));
  return linear;
}

PanelLinear::PanelLinear(int64_t inputs, int64_t outputs, WeightFormat format)
    : inputs_(inputs),
      outputs_(outputs),
      format_(format),
      panels_((outputs + kPanelOutputs - 1) / kPanelOutputs),
      panel_bytes_(PanelBytes(inputs, format)),
      bias_(panels_ * kPanelOutputs) {}

void PanelLinear::PackInt8(const WeightRows& weights, int64_t panel, std::byte* out) const {
  auto* const head = reinterpret_cast<Int8PanelHead*>(out);
  auto* const packed = reinterpret_cast<int8_t*>(head + 1);
  std::vector<float> row(inputs_);
  std::vector<int8_t> quantized(inputs_);
  for (int64_t i = 0; i < kPanelOutputs; ++i) {
    const int64_t output = panel * kPanelOutputs + i;
    std::fill(row.begin(), row.end(), 0.0f);
    if (output < outputs_) weights.read(output, 1, row);
    head->scales[i] = QuantizeInt8Row(row, quantized.data());
    head->sums[i] = 0;
    for (int64_t k = 0; k < inputs_; ++k) {
      packed[(k / kInputGroup * kPanelOutputs + i) * kInputGroup + k % kInputGroup] = quantized[k];
      head->sums[i] += quantized[k];
    }
  }
}

void PanelLinear::PackInt4(const WeightRows& weights, int64_t panel, std::byte* out) const {
  auto* const head = reinterpret_cast<Int4PanelHead*>(out);
  auto* const blocks = reinterpret_cast<Int4PanelBlock*>(head + 1);
  std::vector<float> row(inputs_);
  int8_t quantized[kInt4Block];
  for (int64_t i = 0; i < kPanelOutputs; ++i) {
    const int64_t output = panel * kPanelOutputs + i;
    std::fill(row.begin(), row.end(), 0.0f);
    if (output < outputs_) weights.read(output, 1, row);
    head->sums[i] = 0.0f;
    for (int64_t b = 0; b < inputs_ / kInt4Block; ++b) {
      const std::span<const float, kInt4Block> block(row.data() + b * kInt4Block, kInt4Block);
      const uint16_t scale = QuantizeInt4Block(block, ScaleSign::kAny, quantized);
      blocks[b].scales[i] = static_cast<uint16_t>(scale - kSixteenthExponent);
      int32_t sum = 0;
      for (int64_t k = 0; k < kInt4Block; ++k) {
        const auto nibble = static_cast<uint8_t>(quantized[k] & 0x0F);
        uint8_t& pair = blocks[b].pairs[k / (2 * kInputGroup)][i][k % kInputGroup];
        pair = k / kInputGroup % 2 == 0 ? nibble : static_cast<uint8_t>(pair | nibble << 4);
        sum += quantized[k];
      }
      head->sums[i] += FloatOfBfloat16(scale) * static_cast<float>(sum);
    }
  }
}

void PanelLinear::Run(const float* input, int64_t rows, float* output,
                      const CpuLinearContext& context) {
  QuantizedRows& quantized = *context.quantized;
  quantized.Quantize(input, rows, inputs_, kAdd128, *context.kernels, context.pool);
  const auto* const values = reinterpret_cast<const uint8_t*>(quantized.values());
  const auto kernel =
      format_ == WeightFormat::kInt8 ? context.panel_gemm->int8 : context.panel_gemm->int4;
  const int64_t step = SliceRows(outputs_, panel_bytes_ / kPanelOutputs) / kPanelOutputs;
  context.pool->For(
      (panels_ + step - 1) / step, rows * inputs_ * outputs_, [&](int64_t slice, int) {
        for (int64_t panel = slice * step; panel < std::min(panels_, (slice + 1) * step); ++panel) {
          const int64_t first = panel * kPanelOutputs;
          kernel({.input = values,
                  .quantization = quantized.rows(),
                  .panel = panels_memory_ + panel * panel_bytes_,
                  .bias = bias_.data() + first,
                  .output = output + first,
                  .rows = rows,
                  .inputs = inputs_,
                  .outputs = std::min<int64_t>(kPanelOutputs, outputs_ - first),
                  .output_stride = outputs_});
        }
      });
}

}  // namespace tokenrouter
