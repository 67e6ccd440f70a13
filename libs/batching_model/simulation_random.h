// SplitMix64 for the simulator: small, fast, and the same on every standard library. Threads: none;
// one per simulation.
#pragma once

#include <cmath>
#include <cstdint>

namespace tokenrouter {

class SimulationRandom {
 public:
  explicit SimulationRandom(uint64_t seed) : state_(seed) {}

  // In (0, 1).
  double Uniform() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
  }

  // Of mean 1 and relative spread `cv`, log-normal.
  double Jitter(double cv) {
    const double sigma = std::sqrt(std::log1p(cv * cv));
    return std::exp(sigma * Normal() - sigma * sigma / 2);
  }

 private:
  double Normal() {
    return std::sqrt(-2.0 * std::log(Uniform())) * std::cos(6.283185307179586 * Uniform());
  }

  uint64_t state_;
};

}  // namespace tokenrouter
