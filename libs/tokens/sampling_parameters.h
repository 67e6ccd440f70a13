// The sampling parameters of a request. The same parameters apply to both models, each on its own
// logits. Order of processing (sampler): logit bias, penalties, temperature, top_k, top_p, min_p,
// then Gumbel-max.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

struct SamplingParameters {
  float temperature = 1.0f;        // 0 is greedy: argmax, lowest id on ties.
  int32_t top_k = 0;               // 0: no limit.
  float top_p = 1.0f;              // (0, 1]: smallest set whose probability reaches it.
  float min_p = 0.0f;              // [0, 1]: relative to the most likely token.
  float frequency_penalty = 0.0f;  // [-2, 2], per occurrence since the prompt.
  float presence_penalty = 0.0f;   // [-2, 2], once per token that occurred since the prompt.
  float repetition_penalty =
      1.0f;  // (0, 10], divides positive and multiplies negative logits of ids that occurred.
  std::vector<std::pair<TokenId, float>>
      logit_bias;     // Added to raw logits, [-100, 100], at most kMaxLogitBias.
  uint64_t seed = 0;  // Never absent after admission.
  uint32_t choice = 0;

  bool greedy() const { return temperature == 0.0f; }
  bool has_penalties() const {
    return frequency_penalty != 0.0f || presence_penalty != 0.0f || repetition_penalty != 1.0f;
  }
};

inline constexpr int kMaxLogitBias = 1024;

// INVALID_ARGUMENT naming the field, its value and the allowed range. NaN is never allowed.
absl::Status Validate(const SamplingParameters& parameters);

}  // namespace tokenrouter
