// Randomness without state: every draw is a pure function of its key, so that a token does not
// depend on the batch, on deferral or on which worker computes it. Generator: Philox4x32-10 (Salmon
// et al., SC 2011), from Random123.
#pragma once

#include <cstdint>

#include "libs/tokens/token_types.h"

namespace tokenrouter {

// The purpose of a draw; draws of different purposes at one position are independent.
enum class Purpose : uint32_t { kToken = 0, kAccept = 1, kResidual = 2, kRouter = 3, kJudge = 4 };

struct RandomKey {
  uint64_t seed = 0;
  uint32_t choice = 0;  // Index of the choice of a request with n > 1.
  Position position = 0;
  Purpose purpose = Purpose::kToken;
};

// Uniform in the open interval (0, 1), with 32 random bits. `index` distinguishes draws of one key:
// four neighbours are the four words of one Philox block, so that noise for a whole vocabulary
// costs a quarter (libs/sampling/row_kernels_body.h computes the same words in vectors).
double KeyedUniform(const RandomKey& key, uint32_t index = 0);

// Standard Gumbel noise -ln(-ln u) keyed by token id: argmax over ids of (log p + noise) is a
// sample of p (Gumbel-max). Both models share the noise of a position.
float KeyedGumbel(const RandomKey& key, TokenId id);

}  // namespace tokenrouter
