// What a request must answer: plain one-request routing, straight from the rules, on the two models
// alone. No batching, no caches, no failures.
#pragma once

#include <vector>

#include "libs/inference/hash_model.h"
#include "proto/tokens.pb.h"

namespace tokenrouter::simulation {

struct ReferenceAnswer {
  std::vector<TokenId> ids;  // Generated.
  v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;
};

// REQUIRES: the algorithm is never, always, random, entropy or speculative.
ReferenceAnswer RunReference(const v1::GenerationSpec& spec, const std::vector<TokenId>& prompt,
                             const HashModelOptions& small, const HashModelOptions& large);

}  // namespace tokenrouter::simulation
