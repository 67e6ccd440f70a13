// The answer that a request must get: plain routing of one request, straight from the rules, on the
// two models. No batching, no caches, no failures.
#pragma once

#include <string>
#include <vector>

#include "libs/synthetic/hash_model.h"
#include "libs/tokens/stop_rules.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/request.pb.h"

namespace tokenrouter::simulation {

struct ReferenceAnswer {
  std::vector<TokenId> ids;  // The generated ids.
  api::FinishReason reason = api::FINISH_REASON_UNSPECIFIED;
};

// The stop rules of a request. Both models of the simulation have the same end-of-sequence ids.
StopRules RulesOf(const wire::GenerationSpec& spec, const HashModelOptions& model);

// REQUIRES: the algorithm is never, always, random, entropy or speculative.
ReferenceAnswer RunReference(const wire::GenerationSpec& spec, const std::vector<TokenId>& prompt,
                             const HashModelOptions& small, const HashModelOptions& large);

// Checks an answer however the decode grant changed hands: each token must be what its author's
// model chooses at that position, a token of the small model must be one that the algorithm lets it
// write, and no stop may lie before the end. Returns what is wrong; empty when all is right.
// REQUIRES: as RunReference; authors hold one byte per id as on the wire.
std::string Rescore(const wire::GenerationSpec& spec, const std::vector<TokenId>& prompt,
                    const std::vector<TokenId>& ids, const std::string& authors,
                    const HashModelOptions& small, const HashModelOptions& large);

}  // namespace tokenrouter::simulation
