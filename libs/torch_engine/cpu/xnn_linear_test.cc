#include "libs/torch_engine/cpu/xnn_linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

std::vector<float> Normal(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

struct Layer {
  int64_t inputs, outputs;
  std::vector<float> weights, bias;
  WeightRows rows() const {
    return {.inputs = inputs,
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

std::vector<float> Apply(XnnLinear& linear, std::vector<float> input, int64_t rows,
                         ThreadPool* pool) {
  input.resize(input.size() + XnnLinear::kInputSlack);
  XnnActivations scratch(rows, linear.inputs());
  std::vector<float> output(rows * linear.outputs());
  linear.Run(input.data(), rows, output.data(), *UsableKernels().front(), &scratch, pool);
  return output;
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

class XnnLinearTest : public ::testing::TestWithParam<WeightFormat> {};

TEST_P(XnnLinearTest, MultipliesWithinTheErrorOfItsFormat) {
  ThreadPool pool(2, 0);
  const Layer layer = MakeLayer(96, 130);
  TR_ASSERT_OK_AND_ASSIGN(auto linear, XnnLinear::Pack(layer.rows(), GetParam(), &pool));
  const std::vector<float> input = Normal(5 * 96, 3);
  const std::vector<float> output = Apply(*linear, input, 5, &pool);
  EXPECT_LT(RelativeError(layer, input, 5, output),
            GetParam() == WeightFormat::kInt8 ? 0.02 : 1e-6);
}

TEST_P(XnnLinearTest, GivesARowTheSameBitsInEveryBatch) {
  ThreadPool pool(2, 0);
  for (const int64_t inputs : {64, 896, 1000}) {
    const Layer layer = MakeLayer(inputs, 257);
    TR_ASSERT_OK_AND_ASSIGN(auto linear, XnnLinear::Pack(layer.rows(), GetParam(), &pool));
    const std::vector<float> input = Normal(64 * inputs, 4);
    const std::vector<float> whole = Apply(*linear, input, 64, &pool);
    for (const int64_t rows : {1, 2, 3, 5, 7, 8, 13, 16, 31, 33, 63}) {
      const std::vector<float> tail(input.end() - rows * inputs, input.end());
      const std::vector<float> part = Apply(*linear, tail, rows, &pool);
      EXPECT_EQ(
          std::memcmp(part.data(), whole.data() + (64 - rows) * 257, rows * 257 * sizeof(float)), 0)
          << rows << " rows of " << inputs;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, XnnLinearTest,
                         ::testing::Values(WeightFormat::kInt8, WeightFormat::kFp32),
                         [](const auto& info) {
                           return std::string(WeightFormatName(info.param));
                         });

}  // namespace
}  // namespace tokenrouter
