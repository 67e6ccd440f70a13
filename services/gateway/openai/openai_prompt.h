// The parts of an OpenAI body that hold the prompt: messages, prompts, id lists. Pure and
// thread-safe. Errors: INVALID_ARGUMENT with the field as param.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "services/gateway/generation/generation_request.h"
#include "services/gateway/openai/json_fields.h"

namespace tokenrouter {

// A missing field of `body` is an error that names it.
absl::StatusOr<std::vector<ChatTurn>> ParseMessages(const JsonFields& body);

// A string, a list of ids, a list of one string, or a list of one list of ids.
absl::StatusOr<std::variant<std::string, std::vector<TokenId>>> ParsePrompt(const JsonFields& body);

// The ids of array `value`, which is field `name`.
absl::StatusOr<std::vector<TokenId>> ParseTokenIds(std::string_view name,
                                                   const boost::json::value& value);

}  // namespace tokenrouter
