#include "libs/torch_engine/cpu/panel_linear.h"

#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

constexpr std::align_val_t kAlignment{64};
// Flipping the sign bit of an int8 adds 128 to it as an unsigned byte.
constexpr uint8_t kAdd128 = 0x80;

}  // namespace

void PanelLinear::Free::operator()(int8_t* memory) const {
  ::operator delete[](memory, kAlignment);
}

absl::StatusOr<std::unique_ptr<PanelLinear>> PanelLinear::Pack(const WeightRows& weights,
                                                               ThreadPool* pool) {
  TR_CHECK(weights.inputs % kInt8InputGroup == 0 && weights.inputs <= kMaxInt8Inputs);
  std::unique_ptr<PanelLinear> linear(new PanelLinear(weights.inputs, weights.outputs));
  const int64_t bytes = linear->panels_ * kPanelOutputs * weights.inputs;
  auto* const memory = static_cast<int8_t*>(::operator new[](bytes, kAlignment, std::nothrow));
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes of weights"));
  }
  linear->weights_.reset(memory);
  if (!weights.bias.empty()) {
    std::copy(weights.bias.begin(), weights.bias.end(), linear->bias_.begin());
  }
  pool->For(linear->panels_, bytes, [&](int64_t panel, int) { linear->PackPanel(weights, panel); });
  return linear;
}

PanelLinear::PanelLinear(int64_t inputs, int64_t outputs)
    : inputs_(inputs),
      outputs_(outputs),
      panels_((outputs + kPanelOutputs - 1) / kPanelOutputs),
      sums_(panels_ * kPanelOutputs),
      scales_(panels_ * kPanelOutputs),
      bias_(panels_ * kPanelOutputs) {}

void PanelLinear::PackPanel(const WeightRows& weights, int64_t panel) {
  int8_t* const packed = weights_.get() + panel * kPanelOutputs * inputs_;
  std::vector<float> row(inputs_);
  std::vector<int8_t> quantized(inputs_);
  for (int64_t i = 0; i < kPanelOutputs; ++i) {
    const int64_t output = panel * kPanelOutputs + i;
    std::fill(quantized.begin(), quantized.end(), 0);
    if (output < outputs_) {
      weights.read(output, 1, row);
      scales_[output] = QuantizeWeights(row, quantized.data());
    }
    int32_t sum = 0;
    for (int64_t k = 0; k < inputs_; ++k) {
      packed[(k / kInt8InputGroup * kPanelOutputs + i) * kInt8InputGroup + k % kInt8InputGroup] =
          quantized[k];
      sum += quantized[k];
    }
    sums_[output] = sum;
  }
}

void PanelLinear::Run(const float* input, int64_t rows, float* output,
                      const CpuLinearContext& context) {
  QuantizedRows& quantized = *context.quantized;
  quantized.Quantize(input, rows, inputs_, kAdd128, *context.kernels, context.pool);
  const auto* const values = reinterpret_cast<const uint8_t*>(quantized.values());
  const int64_t step = SliceRows(outputs_, inputs_) / kPanelOutputs;
  context.pool->For(
      (panels_ + step - 1) / step, rows * inputs_ * outputs_, [&](int64_t slice, int) {
        for (int64_t panel = slice * step; panel < std::min(panels_, (slice + 1) * step); ++panel) {
          const int64_t first = panel * kPanelOutputs;
          context.int8_gemm->panel({.input = values,
                                    .quantization = quantized.rows(),
                                    .weights = weights_.get() + first * inputs_,
                                    .weight_sums = sums_.data() + first,
                                    .weight_scales = scales_.data() + first,
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
