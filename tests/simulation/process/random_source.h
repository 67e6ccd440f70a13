// The only source of randomness of a simulated run.
#pragma once

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace tokenrouter::simulation {

class RandomSource {
 public:
  explicit RandomSource(uint64_t seed) : engine_(seed) {}
  // Uniform in [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(double probability) {
    return static_cast<double>(engine_() >> 11) * 0x1p-53 < probability;
  }
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    return absl::Microseconds(
        Between(absl::ToInt64Microseconds(low), absl::ToInt64Microseconds(high)));
  }
  uint64_t Bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tokenrouter::simulation
