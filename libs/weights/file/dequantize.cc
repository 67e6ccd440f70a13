#include "libs/weights/file/dequantize.h"

#include <bit>
#include <cstring>

#include "libs/status/check.h"

namespace tokenrouter {
namespace {

// Bytes of a row as unsigned values; blocks are packed without alignment.
using Bytes = const uint8_t*;

template <typename T>
T Load(Bytes at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

float LoadHalf(Bytes at) { return HalfToFloat(Load<uint16_t>(at)); }

void F32(Bytes in, float* out) { *out = Load<float>(in); }

void F16(Bytes in, float* out) { *out = LoadHalf(in); }

void BF16(Bytes in, float* out) {
  *out = std::bit_cast<float>(static_cast<uint32_t>(Load<uint16_t>(in)) << 16);
}

void Q8_0(Bytes in, float* out) {
  const float scale = LoadHalf(in);
  const auto* quants = reinterpret_cast<const int8_t*>(in + 2);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(quants[i]);
}

// Values 0..15 of a block are the low nibbles of 16 bytes, values 16..31 the high ones.
void Q4_0(Bytes in, float* out) {
  const float scale = LoadHalf(in);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>((in[2 + i] & 15) - 8);
    out[i + 16] = scale * static_cast<float>((in[2 + i] >> 4) - 8);
  }
}

void Q4_1(Bytes in, float* out) {
  const float scale = LoadHalf(in);
  const float low = LoadHalf(in + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(in[4 + i] & 15) + low;
    out[i + 16] = scale * static_cast<float>(in[4 + i] >> 4) + low;
  }
}

// As the four-bit types, with a fifth bit per value in a 32-bit mask.
void Q5_0(Bytes in, float* out) {
  const float scale = LoadHalf(in);
  const auto high = Load<uint32_t>(in + 2);
  for (int i = 0; i < 16; ++i) {
    const int first = (in[6 + i] & 15) | static_cast<int>((high >> i & 1) << 4);
    const int second = (in[6 + i] >> 4) | static_cast<int>((high >> (i + 16) & 1) << 4);
    out[i] = scale * static_cast<float>(first - 16);
    out[i + 16] = scale * static_cast<float>(second - 16);
  }
}

void Q5_1(Bytes in, float* out) {
  const float scale = LoadHalf(in);
  const float low = LoadHalf(in + 2);
  const auto high = Load<uint32_t>(in + 4);
  for (int i = 0; i < 16; ++i) {
    const int first = (in[8 + i] & 15) | static_cast<int>((high >> i & 1) << 4);
    const int second = (in[8 + i] >> 4) | static_cast<int>((high >> (i + 16) & 1) << 4);
    out[i] = scale * static_cast<float>(first) + low;
    out[i + 16] = scale * static_cast<float>(second) + low;
  }
}

struct ScaleAndLow {
  float scale;
  float low;
};

// Twelve bytes hold eight six-bit scales and eight six-bit minimums: those of sub-blocks 0..3 in
// the low six bits of bytes 0..3 and 4..7; those of 4..7 have their low four bits in bytes 8..11
// and their high two bits on top of the former.
ScaleAndLow KScale(Bytes packed, int block, float scale, float low) {
  int scale_bits = 0;
  int low_bits = 0;
  if (block < 4) {
    scale_bits = packed[block] & 63;
    low_bits = packed[block + 4] & 63;
  } else {
    scale_bits = (packed[block + 4] & 15) | (packed[block - 4] >> 6 << 4);
    low_bits = (packed[block + 4] >> 4) | (packed[block] >> 6 << 4);
  }
  return {scale * static_cast<float>(scale_bits), low * static_cast<float>(low_bits)};
}

void Q4_K(Bytes in, float* out) {
  const float scale = LoadHalf(in);
  const float low = LoadHalf(in + 2);
  const Bytes scales = in + 4;
  for (int pair = 0; pair < 4; ++pair) {
    const ScaleAndLow first = KScale(scales, 2 * pair, scale, low);
    const ScaleAndLow second = KScale(scales, 2 * pair + 1, scale, low);
    const Bytes quants = in + 16 + 32 * pair;
    float* values = out + 64 * pair;
    for (int i = 0; i < 32; ++i) {
      values[i] = first.scale * static_cast<float>(quants[i] & 15) - first.low;
      values[i + 32] = second.scale * static_cast<float>(quants[i] >> 4) - second.low;
    }
  }
}

void Q5_K(Bytes in, float* out) {
  const float scale = LoadHalf(in);
  const float low = LoadHalf(in + 2);
  const Bytes scales = in + 4;
  const Bytes high = in + 16;
  for (int pair = 0; pair < 4; ++pair) {
    const ScaleAndLow first = KScale(scales, 2 * pair, scale, low);
    const ScaleAndLow second = KScale(scales, 2 * pair + 1, scale, low);
    const Bytes quants = in + 48 + 32 * pair;
    float* values = out + 64 * pair;
    for (int i = 0; i < 32; ++i) {
      const int bits = high[i] >> (2 * pair);
      values[i] = first.scale * static_cast<float>((quants[i] & 15) | (bits & 1) << 4) - first.low;
      values[i + 32] =
          second.scale * static_cast<float>((quants[i] >> 4) | (bits & 2) << 3) - second.low;
    }
  }
}

// Two halves of 128 values; within a half, value i + 32 * k takes its low four bits from byte
// i + 32 * (k % 2), its high two from bits 2k of byte i, and its scale from entry i / 16 + 2 * k.
void Q6_K(Bytes in, float* out) {
  const float scale = LoadHalf(in + 208);
  for (int half = 0; half < 2; ++half) {
    const Bytes low = in + 64 * half;
    const Bytes high = in + 128 + 32 * half;
    const auto* scales = reinterpret_cast<const int8_t*>(in + 192 + 8 * half);
    float* values = out + 128 * half;
    for (int k = 0; k < 4; ++k) {
      const Bytes nibbles = low + 32 * (k % 2);
      const int nibble_shift = k < 2 ? 0 : 4;
      for (int i = 0; i < 32; ++i) {
        const int quant = ((nibbles[i] >> nibble_shift) & 15) | (((high[i] >> (2 * k)) & 3) << 4);
        const float sub_scale = scale * static_cast<float>(scales[i / 16 + 2 * k]);
        values[i + 32 * k] = sub_scale * static_cast<float>(quant - 32);
      }
    }
  }
}

// The block function is a template argument so that it is inlined into the loop over blocks.
template <void (*Block)(Bytes, float*)>
void Row(const TensorTypeLayout& layout, Bytes in, float* out, size_t blocks) {
  for (size_t i = 0; i < blocks; ++i) {
    Block(in + i * layout.block_bytes, out + i * layout.block_values);
  }
}

using RowFunction = void (*)(const TensorTypeLayout&, Bytes, float*, size_t);

RowFunction FunctionOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return Row<F32>;
    case TensorType::kF16:
      return Row<F16>;
    case TensorType::kBF16:
      return Row<BF16>;
    case TensorType::kQ8_0:
      return Row<Q8_0>;
    case TensorType::kQ4_0:
      return Row<Q4_0>;
    case TensorType::kQ4_1:
      return Row<Q4_1>;
    case TensorType::kQ5_0:
      return Row<Q5_0>;
    case TensorType::kQ5_1:
      return Row<Q5_1>;
    case TensorType::kQ4_K:
      return Row<Q4_K>;
    case TensorType::kQ5_K:
      return Row<Q5_K>;
    case TensorType::kQ6_K:
      return Row<Q6_K>;
  }
  TR_CHECK(false) << "tensor type " << static_cast<int>(type);
  return nullptr;
}

}  // namespace

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t magnitude = half & 0x7FFF;
  if (magnitude >= 0x7C00) {  // Infinity and NaN keep their payload.
    return std::bit_cast<float>(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);
  }
  if (magnitude < 0x400) {  // Zero and subnormals, exact also where the processor flushes them.
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (uint32_t{112} << 23)));
}

void DequantizeRow(TensorType type, std::span<const std::byte> row, std::span<float> out) {
  const TensorTypeLayout& layout = LayoutOf(type);
  const size_t blocks = out.size() / layout.block_values;
  TR_CHECK(blocks * layout.block_values == out.size() && blocks * layout.block_bytes == row.size())
      << "row of " << row.size() << " bytes of " << layout.name << " for " << out.size()
      << " values";
  FunctionOf(type)(layout, reinterpret_cast<Bytes>(row.data()), out.data(), blocks);
}

}  // namespace tokenrouter
