#include "libs/weights/description/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tokenrouter {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

// Llama 3: long waves are stretched by the factor, short ones kept, and those between blended.
double Llama3(const RopeDescription& rope, double frequency) {
  const double original = static_cast<double>(rope.original_context);
  const double wavelength = kTwoPi / frequency;
  if (wavelength > original / rope.low_frequency_factor) return frequency / rope.factor;
  if (wavelength < original / rope.high_frequency_factor) return frequency;
  const double smooth = (original / wavelength - rope.low_frequency_factor) /
                        (rope.high_frequency_factor - rope.low_frequency_factor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
}

// YaRN: the pair whose wave rotates `turns` times within the original context.
double PairOfTurns(const RopeDescription& rope, double turns) {
  const double original = static_cast<double>(rope.original_context);
  return static_cast<double>(rope.dim) * std::log(original / (turns * kTwoPi)) /
         (2 * std::log(rope.theta));
}

// YaRN: pairs that rotate often are kept, pairs that rotate rarely are stretched, with a ramp
// between.
void ApplyYarn(const RopeDescription& rope, std::vector<double>& frequencies) {
  const double low = std::max(std::floor(PairOfTurns(rope, rope.beta_fast)), 0.0);
  double high =
      std::min(std::ceil(PairOfTurns(rope, rope.beta_slow)), static_cast<double>(rope.dim - 1));
  if (high == low) high += 0.001;  // As published: avoids a division by zero.
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / rope.factor * stretched + frequencies[i] * (1 - stretched);
  }
}

}  // namespace

std::vector<double> RopeFrequencies(const RopeDescription& rope) {
  std::vector<double> frequencies(static_cast<size_t>(rope.dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] =
        std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(rope.dim));
  }
  if (rope.scaling == RopeScaling::kYarn) ApplyYarn(rope, frequencies);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    if (rope.scaling == RopeScaling::kLinear) frequencies[i] /= rope.factor;
    if (rope.scaling == RopeScaling::kLlama3) frequencies[i] = Llama3(rope, frequencies[i]);
    if (i < rope.divisors.size()) frequencies[i] /= static_cast<double>(rope.divisors[i]);
  }
  return frequencies;
}

double YarnAttentionFactor(double factor, double weight) {
  return factor > 1 ? 0.1 * weight * std::log(factor) + 1 : 1.0;
}

double RopeAttentionFactor(const RopeDescription& rope) {
  if (rope.scaling != RopeScaling::kYarn) return 1.0;
  return rope.attention_factor > 0 ? rope.attention_factor : YarnAttentionFactor(rope.factor);
}

int64_t StretchedContext(const RopeDescription& rope) {
  if (rope.scaling != RopeScaling::kYarn || rope.original_context <= 0) return 0;
  const double context = rope.factor * static_cast<double>(rope.original_context);
  return context >= 1 && context <= 1e9 ? static_cast<int64_t>(context) : 0;
}

}  // namespace tokenrouter
