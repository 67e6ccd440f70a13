// Rotary position embedding of a model: its parameters and the frequencies that follow from them.
// Ownership: plain values. Threads: pure functions.
// Units: positions are tokens; frequencies are radians per position, one per pair of channels.
// Consumers rotate channel i with channel i + dim/2 (half-split), for every source format.
#pragma once

#include <cstdint>
#include <vector>

namespace tokenrouter {

enum class RopeScaling { kNone, kLinear, kLlama3, kYarn };

struct RopeDescription {
  double theta = 10000.0;
  int64_t dim = 0;  // Channels of a head that are rotated; even.
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;               // linear, llama3, yarn
  int64_t original_context = 0;      // llama3, yarn: tokens the model was pre-trained on
  double low_frequency_factor = 1;   // llama3
  double high_frequency_factor = 4;  // llama3
  double beta_fast = 32;             // yarn
  double beta_slow = 1;              // yarn
  // yarn: what cosines and sines are multiplied by; 0 means YarnAttentionFactor(factor).
  double attention_factor = 0;
  // Per pair of channels, what its frequency is divided by; empty means 1. GGUF files of llama3
  // models carry their scaling in this form and leave `scaling` at kNone.
  std::vector<float> divisors;
};

// Radians per position of each of the dim/2 pairs, scaling applied.
std::vector<double> RopeFrequencies(const RopeDescription& rope);

// What cosines and sines are multiplied by: 1 but for yarn.
double RopeAttentionFactor(const RopeDescription& rope);

// 0.1 `weight` ln(factor) + 1, and 1 where nothing is stretched (factor at most 1).
double YarnAttentionFactor(double factor, double weight = 1);

// The context that yarn stretches the original one to, in tokens; 0 for other scalings and for
// values that ValidateDescription refuses. Files of such models state the original one.
int64_t StretchedContext(const RopeDescription& rope);

}  // namespace tokenrouter
