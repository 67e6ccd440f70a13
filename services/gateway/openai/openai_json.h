// Reads the bodies of POST /v1/chat/completions, /v1/completions, /tokenize and /detokenize into
// request structs. Types are strict, and ranges are checked here unless the check needs the model,
// which request_intake.h then does. Unknown fields are ignored, as OpenAI clients send
// many. Pure and thread-safe. Errors: INVALID_ARGUMENT with the field as param (api_error.h);
// UNIMPLEMENTED is never used: a feature that is not supported is a 400 that says so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/gateway/generation/generation_request.h"

namespace tokenrouter {

// Answers to one prompt: `n`.
inline constexpr int kMaxChoices = 16;

enum class OpenAiEndpoint { kChat, kCompletions };

struct OpenAiRequest {
  OpenAiEndpoint endpoint = OpenAiEndpoint::kChat;
  GenerationRequest generation;
  int choices = 1;  // 1..kMaxChoices.
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage.
};

absl::StatusOr<OpenAiRequest> ParseOpenAiRequest(OpenAiEndpoint endpoint, std::string_view body);

struct TokenizeRequest {
  std::string model;  // Empty: any.
  std::string prompt;
  bool add_special_tokens = true;
};
absl::StatusOr<TokenizeRequest> ParseTokenizeRequest(std::string_view body);

struct DetokenizeRequest {
  std::string model;  // Empty: any.
  std::vector<TokenId> tokens;
};
absl::StatusOr<DetokenizeRequest> ParseDetokenizeRequest(std::string_view body);

}  // namespace tokenrouter
