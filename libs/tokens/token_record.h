// TokenRecord is one token of an answer as every process keeps it, from the engine's choice to what
// a client sees. On the wire its fields travel as columns (libs/routing/wire_records.h).
// Ownership: a plain value.
#pragma once

#include "libs/tokens/token_types.h"

namespace tokenrouter {

struct TokenRecord {
  TokenId id = 0;
  Author author = Author::kSmall;
  float entropy = 0.0f;  // Nats, of the distribution that wrote or verified it; 0 while unknown.
  float logprob = 0.0f;  // Natural log; 0 while unknown.
  friend bool operator==(const TokenRecord&, const TokenRecord&) = default;
};

}  // namespace tokenrouter
