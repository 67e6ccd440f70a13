// Each block type against an independent reference that computes one value at a time straight from
// the format's bit positions, on seeded random blocks; and against hand-made blocks.
#include "libs/weights/file/dequantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace tokenrouter {
namespace {

using Block = std::vector<uint8_t>;

uint64_t NextRandom(uint64_t& state) {
  state += 0x9E3779B97F4A7C15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// Half precision by its definition: sign, exponent of bias 15, ten bits of fraction.
double Half(const Block& block, size_t at) {
  const int bits = block[at] | block[at + 1] << 8;
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = bits >> 10 & 31;
  const double fraction = (bits & 1023) / 1024.0;
  if (exponent == 0) return sign * std::ldexp(fraction, -14);
  return sign * std::ldexp(1 + fraction, exponent - 15);
}

// Bits [first, first + count) of the block read as one little-endian number.
int Bits(const Block& block, size_t first, int count) {
  int value = 0;
  for (int i = 0; i < count; ++i) {
    value |= (block[(first + i) / 8] >> ((first + i) % 8) & 1) << i;
  }
  return value;
}

int Signed8(int value) { return value < 128 ? value : value - 256; }

// Nibble of value i among `group` values that share group/2 bytes starting at byte `at`.
int Nibble(const Block& block, size_t at, int i, int group) {
  const int half = group / 2;
  return Bits(block, 8 * (at + i % half) + (i < half ? 0 : 4), 4);
}

double KQuant(const Block& block, int i, int quant) {
  const int sub = i / 32;
  const int high = sub - 4;
  const int scale = sub < 4
                        ? Bits(block, 8 * (4 + sub), 6)
                        : Bits(block, 8 * (12 + high), 4) | Bits(block, 8 * (4 + high) + 6, 2) << 4;
  const int low = sub < 4 ? Bits(block, 8 * (8 + sub), 6)
                          : Bits(block, 8 * (12 + high) + 4, 4) | Bits(block, 8 * (8 + high) + 6, 2)
                                                                      << 4;
  return Half(block, 0) * scale * quant - Half(block, 2) * low;
}

double Reference(TensorType type, const Block& b, int i) {
  switch (type) {
    case TensorType::kF32: {
      float value;
      std::memcpy(&value, b.data(), 4);
      return value;
    }
    case TensorType::kF16:
      return Half(b, 0);
    case TensorType::kBF16: {
      const int exponent = (b[1] & 127) << 1 | b[0] >> 7;
      return (b[1] & 128 ? -1 : 1) * std::ldexp(1 + (b[0] & 127) / 128.0, exponent - 127);
    }
    case TensorType::kQ8_0:
      return Half(b, 0) * Signed8(b[2 + i]);
    case TensorType::kQ4_0:
      return Half(b, 0) * (Nibble(b, 2, i, 32) - 8);
    case TensorType::kQ4_1:
      return Half(b, 0) * Nibble(b, 4, i, 32) + Half(b, 2);
    case TensorType::kQ5_0:
      return Half(b, 0) * (Nibble(b, 6, i, 32) + 16 * Bits(b, 16 + i, 1) - 16);
    case TensorType::kQ5_1:
      return Half(b, 0) * (Nibble(b, 8, i, 32) + 16 * Bits(b, 32 + i, 1)) + Half(b, 2);
    case TensorType::kQ4_K:
      return KQuant(b, i, Nibble(b, 16 + 32 * (i / 64), i % 64, 64));
    case TensorType::kQ5_K:
      return KQuant(
          b, i,
          Nibble(b, 48 + 32 * (i / 64), i % 64, 64) + 16 * Bits(b, 8 * (16 + i % 32) + i / 32, 1));
    case TensorType::kQ6_K: {
      const int half = i / 128;
      const int low = Nibble(b, 64 * half, i % 128, 128);
      const int high = Bits(b, 8 * (128 + 32 * half + i % 32) + 2 * (i % 128 / 32), 2);
      return Half(b, 208) * Signed8(b[192 + i / 16]) * ((low | high << 4) - 32);
    }
  }
  return 0;
}

// Offsets of half-precision fields, whose exponents must not be those of infinity.
std::vector<size_t> HalfFields(TensorType type) {
  switch (type) {
    case TensorType::kF32:
    case TensorType::kBF16:
      return {};
    case TensorType::kQ6_K:
      return {208};
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      return {0, 2};
    default:
      return {0};
  }
}

class DequantizeTest : public ::testing::TestWithParam<TensorType> {};

TEST_P(DequantizeTest, AgreesWithTheFormatBitByBit) {
  const TensorTypeLayout& layout = LayoutOf(GetParam());
  constexpr int kBlocks = 64;
  uint64_t seed = 7;
  std::vector<Block> blocks(kBlocks, Block(layout.block_bytes));
  std::vector<uint8_t> row;
  for (Block& block : blocks) {
    for (uint8_t& byte : block) byte = static_cast<uint8_t>(NextRandom(seed));
    for (const size_t at : HalfFields(GetParam())) block[at + 1] &= 0xBF;  // Below 2.
    if (GetParam() == TensorType::kBF16 || GetParam() == TensorType::kF32) {
      block.back() = static_cast<uint8_t>((block.back() & 0x80) | 0x3F);
    }
    row.insert(row.end(), block.begin(), block.end());
  }
  std::vector<float> values(kBlocks * layout.block_values);
  DequantizeRow(GetParam(), std::as_bytes(std::span(row)), values);
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = Reference(GetParam(), blocks[i / layout.block_values],
                                      static_cast<int>(i % layout.block_values));
    ASSERT_NEAR(values[i], expected, 1e-6 * (1 + std::abs(expected))) << "value " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, DequantizeTest,
                         ::testing::Values(TensorType::kF32, TensorType::kF16, TensorType::kBF16,
                                           TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1,
                                           TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ4_K,
                                           TensorType::kQ5_K, TensorType::kQ6_K),
                         [](const auto& info) { return std::string(LayoutOf(info.param).name); });

TEST(HalfToFloatTest, IsExactForEveryFiniteValue) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    if ((bits >> 10 & 31) == 31) continue;
    const Block block = {static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8)};
    ASSERT_EQ(HalfToFloat(static_cast<uint16_t>(bits)), Half(block, 0)) << bits;
  }
}

TEST(HalfToFloatTest, KeepsInfinityAndNan) {
  EXPECT_EQ(HalfToFloat(0x7C00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(HalfToFloat(0xFC00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7E00)));
}

TEST(DequantizeTest, ReadsAHandMadeBlock) {
  Block block(18, 0x80);  // Low nibbles 0, high nibbles 8.
  block[0] = 0x00;
  block[1] = 0x40;  // Scale 2.
  std::vector<float> values(32);
  DequantizeRow(TensorType::kQ4_0, std::as_bytes(std::span(block)), values);
  EXPECT_EQ(values[0], -16.0F);
  EXPECT_EQ(values[16], 0.0F);
}

TEST(DequantizeDeathTest, RefusesARowOfAnotherSize) {
  const Block block(17);
  std::vector<float> values(32);
  EXPECT_DEATH(DequantizeRow(TensorType::kQ4_0, std::as_bytes(std::span(block)), values),
               "row of 17 bytes of Q4_0");
}

}  // namespace
}  // namespace tokenrouter
