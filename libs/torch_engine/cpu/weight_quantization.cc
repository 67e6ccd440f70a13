#include "libs/torch_engine/cpu/weight_quantization.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tokenrouter {
namespace {

constexpr float kInt8Limit = 127.0f;
constexpr float kInt4Lowest = -8.0f;
constexpr float kInt4Highest = 7.0f;
// Blocks without a larger magnitude are zero, so that scales stay normal numbers.
constexpr float kLeastMagnitude = 1e-30f;
// Candidates put the largest magnitude of a block at these multiples of the scale.
constexpr float kEdges[] = {7.0f, 7.7f, 8.4f};
// Adding and subtracting it rounds to the nearest integer, ties to even, in vector code too.
constexpr float kRounder = 12582912.0f;

// Vectors of the compiler, which every instruction set computes alike.
constexpr int kLanes = 4;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
constexpr int kParts = kInt4Block / kLanes;
struct BlockLanes {
  Lanes parts[kParts];
};

Lanes Int4Of(Lanes weights, float inverse) {
  const Lanes scaled = weights * inverse;
  const Lanes low = scaled < kInt4Lowest ? Lanes{} + kInt4Lowest : scaled;
  const Lanes inside = low > kInt4Highest ? Lanes{} + kInt4Highest : low;
  return (inside + kRounder) - kRounder;
}

float Sum(Lanes lanes) {
  float sum = 0.0f;
  for (int lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
  return sum;
}

uint16_t NearestBfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// Rounds the block with each candidate scale, and takes the rounding whose own best scale (least
// squares) leaves the least error. That scale, not yet a bfloat16 number.
float BestScale(const BlockLanes& block, float largest, ScaleSign sign) {
  float best = largest / kInt4Highest, most = 0.0f;
  for (const float direction : {1.0f, -1.0f}) {
    if (direction < 0.0f && sign == ScaleSign::kPositive) continue;
    for (const float edge : kEdges) {
      Lanes products = {}, squares = {};
      for (const Lanes& weights : block.parts) {
        const Lanes rounded = Int4Of(weights, direction * edge / largest);
        products += weights * rounded;
        squares += rounded * rounded;
      }
      const float product = Sum(products), square = Sum(squares);
      // How much of the block's square the rounding explains.
      const float explained = product * product / square;
      if (explained > most) {
        most = explained;
        best = product / square;
      }
    }
  }
  return best;
}

}  // namespace

float FloatOfBfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

float QuantizeInt8Row(std::span<const float> row, int8_t* out) {
  float largest = 0.0f;
  for (const float value : row) largest = std::max(largest, std::fabs(value));
  const float scale = largest > 0.0f ? largest / kInt8Limit : 1.0f;
  for (size_t i = 0; i < row.size(); ++i) {
    out[i] =
        static_cast<int8_t>(std::clamp(std::nearbyint(row[i] / scale), -kInt8Limit, kInt8Limit));
  }
  return scale;
}

uint16_t QuantizeInt4Block(std::span<const float, kInt4Block> block, ScaleSign sign, int8_t* out) {
  float largest = 0.0f;
  for (const float weight : block) largest = std::max(largest, std::fabs(weight));
  if (largest <= kLeastMagnitude) {
    std::fill_n(out, kInt4Block, int8_t{0});
    return NearestBfloat16(1.0f);
  }
  BlockLanes lanes;
  std::memcpy(&lanes, block.data(), sizeof(lanes));
  const uint16_t scale = NearestBfloat16(BestScale(lanes, largest, sign));
  const float inverse = 1.0f / FloatOfBfloat16(scale);
  for (int part = 0; part < kParts; ++part) {
    const Lanes values = Int4Of(lanes.parts[part], inverse);
    for (int lane = 0; lane < kLanes; ++lane) {
      out[part * kLanes + lane] = static_cast<int8_t>(values[lane]);
    }
  }
  return scale;
}

}  // namespace tokenrouter
