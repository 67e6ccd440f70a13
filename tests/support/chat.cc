#include "tests/support/chat.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "tests/support/http_client.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

void AddRouting(const json::object& choice, ChatAnswer* answer) {
  const json::value* routing = choice.if_contains("routing");
  if (routing == nullptr || !routing->is_object()) return;
  for (const json::value& token : routing->as_object().at("tokens").as_array()) {
    answer->ids.push_back(token.at("id").to_number<int64_t>());
    answer->authors.emplace_back(token.at("author").as_string());
  }
}

void AddFinish(const json::object& choice, ChatAnswer* answer) {
  const json::value* reason = choice.if_contains("finish_reason");
  if (reason != nullptr && reason->is_string())
    answer->finish_reason = std::string(reason->as_string());
}

void AddUsage(const json::object& body, ChatAnswer* answer) {
  const json::value* usage = body.if_contains("usage");
  if (usage != nullptr && usage->is_object()) answer->usage = usage->as_object();
}

}  // namespace

int ChatAnswer::CountBy(const std::string& author) const {
  return static_cast<int>(std::count(authors.begin(), authors.end(), author));
}

std::string ChatBody(const ChatRequest& request, bool stream) {
  json::object body = {{"model", "tokenrouter"},
                       {"messages", {{{"role", "user"}, {"content", request.prompt}}}},
                       {"max_tokens", request.max_tokens},
                       {"temperature", request.temperature},
                       {"seed", request.seed},
                       {"ignore_eos", request.ignore_eos},
                       {"return_routing", true},
                       {"stream", stream}};
  if (!request.routing.empty()) body["routing"] = request.routing;
  if (stream) body["stream_options"] = {{"include_usage", true}};
  for (const auto& field : request.more) body[field.key()] = field.value();
  return json::serialize(body);
}

absl::StatusOr<ChatAnswer> Chat(int http_port, const ChatRequest& request, absl::Duration timeout) {
  TR_ASSIGN_OR_RETURN(
      const HttpResponse response,
      HttpFetch(http_port, "POST", "/v1/chat/completions", ChatBody(request, false), {}, timeout));
  if (response.code != 200)
    return absl::InternalError(absl::StrCat("HTTP ", response.code, ": ", response.body));
  const json::object body = json::parse(response.body).as_object();
  const json::object& choice = body.at("choices").at(0).as_object();
  ChatAnswer answer;
  answer.text = std::string(choice.at("message").at("content").as_string());
  AddRouting(choice, &answer);
  AddFinish(choice, &answer);
  AddUsage(body, &answer);
  return answer;
}

absl::Status AddEvent(const std::string& event, ChatAnswer* answer) {
  const json::object body = json::parse(event).as_object();
  if (body.contains("error")) return absl::InternalError(event);
  AddUsage(body, answer);
  const json::value* choices = body.if_contains("choices");
  if (choices == nullptr || choices->as_array().empty()) return absl::OkStatus();
  const json::object& choice = choices->at(0).as_object();
  const json::object& delta = choice.at("delta").as_object();
  if (const json::value* content = delta.if_contains("content");
      content != nullptr && content->is_string()) {
    answer->text += std::string(content->as_string());
  }
  AddRouting(choice, answer);
  AddFinish(choice, answer);
  return absl::OkStatus();
}

absl::StatusOr<ChatAnswer> ChatStreaming(int http_port, const ChatRequest& request) {
  TR_ASSIGN_OR_RETURN(const auto stream, EventStream::Open(http_port, "/v1/chat/completions",
                                                           ChatBody(request, true)));
  if (stream->code() != 200) return absl::InternalError(absl::StrCat("HTTP ", stream->code()));
  ChatAnswer answer;
  while (true) {
    TR_ASSIGN_OR_RETURN(const std::optional<std::string> event, stream->Next());
    if (!event.has_value()) return absl::UnavailableError("the stream ended without [DONE]");
    if (*event == "[DONE]") return answer;
    TR_RETURN_IF_ERROR(AddEvent(*event, &answer));
  }
}

}  // namespace tokenrouter
