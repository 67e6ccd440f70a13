// The token details and usage counts that a client may see, for every front end.
// Ownership: plain values. Units: entropies are nats, logprobs natural logs, counts tokens.
#pragma once

#include <cstdint>
#include <string>

#include "libs/tokens/token_record.h"

namespace tokenrouter {

// One committed token.
struct TokenInfo {
  TokenRecord record;
  std::string bytes;  // Its own, not necessarily UTF-8.
  std::string text;   // What it added to the answer's text; joined, these are the whole text.
};

struct UsageCounts {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // Of prompt_tokens: were in the KV cache already.
  int32_t small_tokens = 0;
  int32_t large_tokens = 0;
  int32_t large_alone_tokens = 0;  // Of large_tokens: written in large-only service.
  bool degraded = false;
  // "routed", "large_alone" or "mixed"; "routed" before the first token.
  const char* service_mode() const {
    if (large_alone_tokens == 0) return "routed";
    return large_alone_tokens == completion_tokens() ? "large_alone" : "mixed";
  }
  int32_t completion_tokens() const { return small_tokens + large_tokens; }
};

}  // namespace tokenrouter
