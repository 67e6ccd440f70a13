// Random floats for tests of kernels. Threads: pure function.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace tokenrouter {

// Normally distributed; the same for the same seed.
inline std::vector<float> Normal(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

}  // namespace tokenrouter
