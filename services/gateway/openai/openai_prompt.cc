#include "services/gateway/openai/openai_prompt.h"

#include <boost/json.hpp>
#include <limits>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "services/gateway/errors/api_error.h"
#include "services/gateway/text/absl_view.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

absl::StatusOr<std::string> ParseTextPart(const std::string& name, const json::value& part) {
  if (!part.is_object()) {
    return InvalidField(name, absl::StrCat(name, " must be an object, got ", JsonKindName(part)));
  }
  const JsonFields fields(part.get_object(), name + ".");
  TR_ASSIGN_OR_RETURN(const auto type, fields.String("type"));
  if (type != "text") {
    return InvalidField(name + ".type",
                        absl::StrCat(name, ".type is ", type ? "\"" + *type + "\"" : "missing",
                                     "; allowed: \"text\" (this model reads text only)"));
  }
  TR_ASSIGN_OR_RETURN(const auto text, fields.String("text"));
  if (!text) return InvalidField(name + ".text", absl::StrCat(name, ".text is missing"));
  return *text;
}

absl::StatusOr<std::string> ParseContent(const JsonFields& message, const std::string& role) {
  const json::value* content = message.Find("content");
  const std::string name = message.Name("content");
  if (content == nullptr) {
    // A chat turn of the assistant that only called tools has no content.
    if (role == "assistant") return std::string();
    return InvalidField(name, absl::StrCat(name, " is missing"));
  }
  if (content->is_string()) return std::string(content->get_string());
  if (!content->is_array()) {
    return message.WrongType("content", *content, "a string or an array of text parts");
  }
  std::string text;
  const json::array& parts = content->get_array();
  for (size_t i = 0; i < parts.size(); ++i) {
    TR_ASSIGN_OR_RETURN(const std::string part,
                        ParseTextPart(absl::StrCat(name, "[", i, "]"), parts[i]));
    text += part;
  }
  return text;
}

absl::StatusOr<ChatTurn> ParseMessage(const std::string& name, const json::value& value) {
  if (!value.is_object()) {
    return InvalidField(name, absl::StrCat(name, " must be an object, got ", JsonKindName(value)));
  }
  const JsonFields fields(value.get_object(), name + ".");
  TR_ASSIGN_OR_RETURN(const auto role, fields.String("role"));
  if (!role) return InvalidField(name + ".role", absl::StrCat(name, ".role is missing"));
  if (fields.Find("tool_calls") != nullptr) {
    return InvalidField(name + ".tool_calls",
                        absl::StrCat(name, ".tool_calls is not supported yet"));
  }
  TR_ASSIGN_OR_RETURN(std::string content, ParseContent(fields, *role));
  return ChatTurn{*role, std::move(content)};
}

}  // namespace

absl::StatusOr<std::vector<ChatTurn>> ParseMessages(const JsonFields& body) {
  const json::value* value = body.Find("messages");
  if (value == nullptr) return InvalidField("messages", "messages is missing");
  if (!value->is_array()) return body.WrongType("messages", *value, "an array of messages");
  const json::array& messages = value->get_array();
  std::vector<ChatTurn> turns;
  turns.reserve(messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    TR_ASSIGN_OR_RETURN(ChatTurn turn,
                        ParseMessage(absl::StrCat("messages[", i, "]"), messages[i]));
    turns.push_back(std::move(turn));
  }
  return turns;
}

absl::StatusOr<std::vector<TokenId>> ParseTokenIds(std::string_view name,
                                                   const json::value& value) {
  if (!value.is_array()) {
    return InvalidField(name, absl::StrCat(View(name), " must be an array of token ids, got ",
                                           JsonKindName(value)));
  }
  std::vector<TokenId> ids;
  ids.reserve(value.get_array().size());
  for (const json::value& entry : value.get_array()) {
    const bool fits = entry.is_int64() && entry.get_int64() >= 0 &&
                      entry.get_int64() <= std::numeric_limits<TokenId>::max();
    if (!fits) {
      return InvalidField(name, absl::StrCat(View(name), "[", ids.size(), "] is ", ShownJson(entry),
                                             "; allowed: token ids, integers >= 0"));
    }
    ids.push_back(static_cast<TokenId>(entry.get_int64()));
  }
  return ids;
}

absl::StatusOr<std::variant<std::string, std::vector<TokenId>>> ParsePrompt(
    const JsonFields& body) {
  using Prompt = std::variant<std::string, std::vector<TokenId>>;
  const json::value* value = body.Find("prompt");
  if (value == nullptr) return InvalidField("prompt", "prompt is missing");
  if (value->is_string()) return Prompt(std::string(value->get_string()));
  if (!value->is_array()) {
    return body.WrongType("prompt", *value, "a string, an array of token ids or one string");
  }
  const json::array& entries = value->get_array();
  if (entries.empty()) return InvalidField("prompt", "prompt is an empty array; allowed: 1 prompt");
  const json::value& first = entries.front();
  if (first.is_string() || first.is_array()) {
    if (entries.size() > 1) {
      return InvalidField("prompt", absl::StrCat("prompt holds ", entries.size(),
                                                 " prompts; allowed: 1 per request"));
    }
    if (first.is_string()) return Prompt(std::string(first.get_string()));
  }
  TR_ASSIGN_OR_RETURN(std::vector<TokenId> ids,
                      ParseTokenIds("prompt", first.is_array() ? first : *value));
  return Prompt(std::move(ids));
}

}  // namespace tokenrouter
