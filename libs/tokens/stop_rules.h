// Decides when a request ends by its ids alone. The gateway handles stop strings.
// Pure and thread-safe. Positions are canonical; counts are generated tokens, the stopping id
// included.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "libs/tokens/token_types.h"

namespace tokenrouter {

enum class FinishReason : uint8_t { kNone = 0, kStop = 1, kLength = 2, kCancelled = 3, kError = 4 };

// "none", "stop", "length", "cancelled" or "error".
const char* FinishReasonName(FinishReason reason);

struct StopRules {
  std::vector<TokenId> stop_ids;  // End-of-sequence ids of both models and the request's own.
  bool ignore_eos = false;        // True: stop_ids end nothing.
  int32_t min_new_tokens = 0;     // Stop ids end nothing (and are masked) before this many tokens.
  int32_t max_new_tokens = 1;     // >= 1.
};

// Adds the end-of-sequence ids of the models. Afterwards the stop ids are in order, each once.
void AddEosIds(std::span<const TokenId> eos_ids, StopRules* rules);

// Why committing `id` as generated token number `generated` (1 for the first) ends the request;
// kNone: it continues.
FinishReason CheckStop(const StopRules& rules, TokenId id, int32_t generated);

// True when stop ids must be masked for generated token number `generated`.
bool MasksStopIds(const StopRules& rules, int32_t generated);

}  // namespace tokenrouter
