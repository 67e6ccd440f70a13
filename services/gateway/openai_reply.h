// Writes the bodies and stream events of /v1/chat/completions and /v1/completions.
// Ownership: plain values. Threads: pure, thread-safe. All text becomes valid UTF-8.
// Units: created is seconds since the Unix epoch; entropies are nats; logprobs natural logs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libs/tokens/stop_rules.h"
#include "libs/tokens/token_types.h"
#include "services/gateway/api_error.h"
#include "services/gateway/openai_json.h"

namespace tokenrouter {

// One committed token as clients may see it.
struct TokenInfo {
  TokenId id = 0;
  std::string bytes;  // Its own, not necessarily UTF-8.
  std::string
      text;  // What it added to the answer's text; joined, they are the text that the tokens make.
  Author author = Author::kSmall;
  float entropy = 0.0f;
  float logprob = 0.0f;
};

struct UsageCounts {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // Of prompt_tokens: were in the KV cache already.
  int32_t small_tokens = 0;
  int32_t large_tokens = 0;
  int32_t large_alone_tokens = 0;  // Of large_tokens: written while the large model wrote all.
  bool degraded = false;
  // "routed", "large_alone" or "mixed"; "routed" before the first token.
  const char* service_mode() const;
  int32_t completion_tokens() const { return small_tokens + large_tokens; }
};

// What all replies of one request share.
struct ReplyHeader {
  OpenAiEndpoint endpoint = OpenAiEndpoint::kChat;
  std::string id;     // chatcmpl-... or cmpl-...
  std::string model;  // As the client named it.
  std::string system_fingerprint;
  int64_t created = 0;
  bool logprobs = false;
  bool return_routing = false;
  bool asked_routed = false;   // The client asked for routed service.
  bool include_usage = false;  // Events carry usage: null, as OpenAI's do then.
};

// One choice of a reply that is not streamed.
struct ChoiceReply {
  std::string text;
  std::vector<TokenInfo> tokens;
  FinishReason reason = FinishReason::kNone;
};

// "stop" or "length"; other reasons are errors and never get here.
const char* OpenAiFinishReason(FinishReason reason);

// JSON of stream events, without the framing of server-sent events. `index` names the choice; with
// `first`, its first event, a chat delta carries the role.
std::string DeltaEvent(const ReplyHeader& header, int index, std::string_view text,
                       std::span<const TokenInfo> tokens, bool first);
std::string FinishEvent(const ReplyHeader& header, int index, FinishReason reason, bool first);
std::string UsageEvent(const ReplyHeader& header, const UsageCounts& usage);

// {"error":{"message","type","param","code",...}}: the body of every error, and an event within a
// stream.
std::string ErrorJson(const ApiError& error);

// The whole body of a reply that is not streamed.
std::string WholeReply(const ReplyHeader& header, std::span<const ChoiceReply> choices,
                       const UsageCounts& usage);

}  // namespace tokenrouter
