// A request as the client sent it, before its text is tokenized. HTTP and gRPC bodies are both read
// into it, and RequestIntake checks it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "libs/tokens/sampling_parameters.h"
#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "services/gateway/text/text_model.h"
#include "tokenrouter/internal/v1/request.pb.h"

namespace tokenrouter {

struct RoutingChoice {
  std::string algorithm;
  std::map<std::string, double> parameters;
};

// Bounds of the waits for fuller batches, in milliseconds; 0: none. 0..kMaxServiceBoundMs.
struct ServiceBounds {
  int32_t max_defer_ms = 0;  // Of one wait.
  int32_t ttft_slo_ms = 0;   // From submission to the first token.
  int32_t token_slo_ms = 0;  // Between two tokens.
};
inline constexpr int32_t kMaxServiceBoundMs = 600'000;

struct GenerationRequest {
  std::string request_id;  // Never empty after the front end has seen it.
  std::string model;
  // Raw text, ids, or a conversation for the chat template.
  std::variant<std::string, std::vector<TokenId>, std::vector<ChatTurn>> input;
  std::string template_kwargs_json;  // JSON object; empty: none.

  std::optional<int32_t> max_new_tokens;  // What the client asked for.
  int32_t default_max_new_tokens = 0;     // Used when it did not; 0: what the context leaves.
  int32_t min_new_tokens = 0;
  SamplingParameters sampling;
  std::optional<uint64_t> seed;          // Absent: drawn.
  std::optional<RoutingChoice> routing;  // Absent: the pair's default.

  std::vector<std::string> stop;  // None is empty.
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false;
  // Unspecified: the scheduler chooses.
  api::ServiceMode service_mode = api::SERVICE_MODE_UNSPECIFIED;
  ServiceBounds bounds;
  bool logprobs = false;        // Of the chosen tokens.
  bool return_routing = false;  // Author and entropy of every token.
};

}  // namespace tokenrouter
