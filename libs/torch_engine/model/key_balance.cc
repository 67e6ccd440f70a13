#include "libs/torch_engine/model/key_balance.h"

#include <algorithm>
#include <cmath>

namespace tokenrouter {
namespace {

// Factors of 2^-20 to 2^20 keep weights, keys and queries far from the ends of floats.
constexpr int kMostDoublings = 20;

float PowerOfTwoNear(float size) {
  if (!(size > 0)) return 1.0f;  // A channel that is always 0.
  const int exponent = static_cast<int>(std::lround(std::log2(size)));
  return std::ldexp(1.0f, std::clamp(exponent, -kMostDoublings, kMostDoublings));
}

}  // namespace

std::vector<float> KeyBalance(std::span<const float> sizes, int64_t head_dim, int64_t rotary_dim) {
  std::vector<float> factors(sizes.size());
  const int64_t half = rotary_dim / 2;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t channel = static_cast<int64_t>(i) % head_dim;
    float size = sizes[i];
    if (channel < half) size = std::hypot(size, sizes[i + half]);
    if (channel >= half && channel < rotary_dim) size = std::hypot(size, sizes[i - half]);
    factors[i] = PowerOfTwoNear(size);
  }
  return factors;
}

}  // namespace tokenrouter
