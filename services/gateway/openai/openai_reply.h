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
#include "services/gateway/errors/api_error.h"
#include "services/gateway/generation/token_info.h"
#include "services/gateway/openai/openai_json.h"

namespace tokenrouter {

// The parts that all replies of one request share.
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
