#include "libs/torch_engine/cpu/weight_quantization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tokenrouter {
namespace {

using Block = std::span<const float, kInt4Block>;

std::vector<float> NormalBlock(uint32_t seed, float size) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, size);
  std::vector<float> values(kInt4Block);
  for (float& value : values) value = normal(generator);
  return values;
}

double SquaredError(const std::vector<float>& block, double scale, const int8_t* quantized) {
  double error = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    error += std::pow(block[i] - scale * quantized[i], 2);
  }
  return error;
}

// The error that remains after rounding to multiples of max / 7.
double PlainError(const std::vector<float>& block) {
  double largest = 0, error = 0;
  for (const float value : block) largest = std::max<double>(largest, std::fabs(value));
  for (const float value : block) {
    error += std::pow(value - largest / 7 * std::nearbyint(value / largest * 7), 2);
  }
  return error;
}

double ErrorOf(const std::vector<float>& block, ScaleSign sign) {
  int8_t quantized[kInt4Block];
  const float scale = FloatOfBfloat16(QuantizeInt4Block(Block(block), sign, quantized));
  for (const int8_t value : quantized) {
    EXPECT_GE(value, -8);
    EXPECT_LE(value, 7);
  }
  EXPECT_TRUE(sign == ScaleSign::kAny || scale > 0.0f);
  EXPECT_TRUE(std::isnormal(scale / 16));
  return SquaredError(block, scale, quantized);
}

TEST(WeightQuantization, SearchesABetterInt4ScaleThanTheLargestWeightGives) {
  double plain = 0, positive = 0, any = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> block = NormalBlock(seed, 0.02f);
    plain += PlainError(block);
    positive += ErrorOf(block, ScaleSign::kPositive);
    any += ErrorOf(block, ScaleSign::kAny);
  }
  EXPECT_LT(positive, 0.9 * plain);
  EXPECT_LT(any, 0.95 * positive);
}

TEST(WeightQuantization, KeepsInt4BlocksThatLieOnTheGrid) {
  for (const float scale : {0.5f, -0.25f}) {
    std::vector<float> block(kInt4Block);
    for (int i = 0; i < kInt4Block; ++i) block[i] = scale * static_cast<float>(i % 16 - 8);
    EXPECT_EQ(ErrorOf(block, ScaleSign::kAny), 0.0);
  }
}

TEST(WeightQuantization, GivesInt4BlocksOfNothingANormalScale) {
  for (const float value : {0.0f, 1e-38f, -1e-42f}) {
    EXPECT_LT(ErrorOf(std::vector<float>(kInt4Block, value), ScaleSign::kAny), 1e-60);
  }
  EXPECT_LT(ErrorOf(NormalBlock(1, 1e-29f), ScaleSign::kPositive), 1e-56);
  EXPECT_LT(ErrorOf(NormalBlock(1, 1e15f), ScaleSign::kAny), 1e30);
}

TEST(WeightQuantization, PutsTheLargestWeightOfAnInt8RowOnTheEdge) {
  const std::vector<float> row = {0.5f, -2.0f, 0.0f, 1.0f};
  int8_t quantized[4];
  EXPECT_FLOAT_EQ(QuantizeInt8Row(row, quantized), 2.0f / 127);
  EXPECT_EQ(std::vector<int>(quantized, quantized + 4), (std::vector<int>{32, -127, 0, 64}));
  EXPECT_EQ(QuantizeInt8Row(std::vector<float>(4, 0.0f), quantized), 1.0f);
}

}  // namespace
}  // namespace tokenrouter
