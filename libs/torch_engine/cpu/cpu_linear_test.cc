#include "libs/torch_engine/cpu/cpu_linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "libs/status/status_matchers.h"
#include "libs/torch_engine/cpu/normal_values.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Layer {
  int64_t inputs, outputs;
  std::vector<float> weights, bias;
  WeightRows rows() const {
    return {.name = "blk.0.ffn_down.weight",
            .inputs = inputs,
            .outputs = outputs,
            .read =
                [this](int64_t first, int64_t count, std::span<float> out) {
                  std::memcpy(out.data(), weights.data() + first * inputs,
                              count * inputs * sizeof(float));
                },
            .bias = bias};
  }
};

Layer MakeLayer(int64_t inputs, int64_t outputs) {
  return {inputs, outputs, Normal(inputs * outputs, 1), Normal(outputs, 2)};
}

struct Variant {
  std::string name;
  WeightFormat format;
  const PanelGemm* panel_gemm;
};

// The implementations that this processor runs.
std::vector<Variant> Variants() {
  std::vector<Variant> variants = {{"fp32", WeightFormat::kFp32, nullptr},
                                   {"int8_xnn", WeightFormat::kInt8, nullptr},
                                   {"int4_xnn", WeightFormat::kInt4, nullptr},
                                   {"int8_scalar", WeightFormat::kInt8, &ScalarPanelGemm()},
                                   {"int4_scalar", WeightFormat::kInt4, &ScalarPanelGemm()}};
  for (const PanelGemm* const gemm : UsablePanelGemms()) {
    variants.push_back({std::string("int8_") + gemm->name, WeightFormat::kInt8, gemm});
    variants.push_back({std::string("int4_") + gemm->name, WeightFormat::kInt4, gemm});
  }
  return variants;
}

double Tolerance(WeightFormat format) {
  switch (format) {
    case WeightFormat::kInt8:
      return 0.02;
    case WeightFormat::kInt4:
      return 0.1;
    case WeightFormat::kFp32:
      return 1e-6;
  }
  return 0;
}

// Root mean square of the difference over that of the expectation.
double RelativeError(const Layer& layer, const std::vector<float>& input, int64_t rows,
                     const std::vector<float>& output) {
  double error = 0, size = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < layer.outputs; ++o) {
      double sum = layer.bias[o];
      for (int64_t i = 0; i < layer.inputs; ++i) {
        sum += double{input[r * layer.inputs + i]} * layer.weights[o * layer.inputs + i];
      }
      error += std::pow(sum - output[r * layer.outputs + o], 2);
      size += sum * sum;
    }
  }
  return std::sqrt(error / size);
}

class CpuLinearTest : public ::testing::TestWithParam<Variant> {
 protected:
  std::unique_ptr<CpuLinear> Pack(const Layer& layer) const {
    auto linear = PackLinear(layer.rows(), GetParam().format, Context(nullptr));
    EXPECT_THAT(linear, IsOk());
    return *std::move(linear);
  }
  std::vector<float> Apply(CpuLinear* linear, const Layer& layer, std::vector<float> input,
                           int64_t rows) const {
    input.resize(input.size() + CpuLinear::kInputSlack);
    QuantizedRows quantized(rows, layer.inputs);
    std::vector<float> output(rows * layer.outputs);
    linear->Run(input.data(), rows, output.data(), Context(&quantized));
    return output;
  }
  CpuLinearContext Context(QuantizedRows* quantized) const {
    return {.kernels = UsableKernels().front(),
            .panel_gemm = GetParam().panel_gemm,
            .pool = &pool_,
            .memory = &memory_,
            .quantized = quantized};
  }

 private:
  mutable ThreadPool pool_{2, 0};
  mutable PackedMemory memory_;
};

TEST_P(CpuLinearTest, MultipliesWithinTheErrorOfItsFormat) {
  const Layer layer = MakeLayer(96, 130);
  const std::vector<float> input = Normal(5 * 96, 3);
  const std::vector<float> output = Apply(Pack(layer).get(), layer, input, 5);
  EXPECT_LT(RelativeError(layer, input, 5, output), Tolerance(GetParam().format));
}

TEST_P(CpuLinearTest, GivesARowTheSameBitsInEveryBatch) {
  for (const int64_t inputs : {64, 896, 1000, 1002}) {
    if (GetParam().format == WeightFormat::kInt4 && inputs % kInt4Block != 0) continue;
    const Layer layer = MakeLayer(inputs, 257);
    const auto linear = Pack(layer);
    const std::vector<float> input = Normal(64 * inputs, 4);
    const std::vector<float> whole = Apply(linear.get(), layer, input, 64);
    for (const int64_t rows : {1, 2, 3, 5, 7, 8, 13, 16, 31, 33, 63}) {
      const std::vector<float> tail(input.end() - rows * inputs, input.end());
      const std::vector<float> part = Apply(linear.get(), layer, tail, rows);
      EXPECT_EQ(
          std::memcmp(part.data(), whole.data() + (64 - rows) * 257, rows * 257 * sizeof(float)), 0)
          << rows << " rows of " << inputs;
    }
  }
}

TEST_P(CpuLinearTest, RefusesInt4InputsThatAreNotWholeBlocksNamingTensorAndFix) {
  const Layer layer = MakeLayer(100, 8);
  const auto linear = PackLinear(layer.rows(), GetParam().format, Context(nullptr));
  if (GetParam().format != WeightFormat::kInt4) {
    EXPECT_THAT(linear, IsOk());
    return;
  }
  EXPECT_THAT(linear, StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("'blk.0.ffn_down.weight' has 100 inputs"),
                                     HasSubstr("multiple of 32"), HasSubstr("int8"))));
}

INSTANTIATE_TEST_SUITE_P(Variants, CpuLinearTest, ::testing::ValuesIn(Variants()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tokenrouter
