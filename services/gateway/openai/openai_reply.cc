#include "services/gateway/openai/openai_reply.h"

#include <boost/json.hpp>
#include <cmath>

#include "libs/telemetry/plain_json.h"
#include "services/gateway/text/utf8.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

// JSON has no infinities; a probability of zero is shown as OpenAI shows it.
double FiniteLogprob(float logprob) {
  return std::isfinite(logprob) ? ShortestDecimal(logprob) : -9999.0;
}
double FiniteEntropy(float entropy) {
  return std::isfinite(entropy) ? ShortestDecimal(entropy) : 0.0;
}

const char* AuthorName(Author author) { return author == Author::kLarge ? "large" : "small"; }

json::value ChatLogprobs(std::span<const TokenInfo> tokens) {
  json::array content;
  for (const TokenInfo& token : tokens) {
    json::array bytes;
    for (const char byte : token.bytes) bytes.push_back(static_cast<uint8_t>(byte));
    content.push_back(json::object{{"token", ToValidUtf8(token.bytes)},
                                   {"logprob", FiniteLogprob(token.record.logprob)},
                                   {"bytes", std::move(bytes)},
                                   {"top_logprobs", json::array()}});
  }
  return json::object{{"content", std::move(content)}, {"refusal", nullptr}};
}

json::value CompletionLogprobs(std::span<const TokenInfo> tokens) {
  json::array texts;
  json::array logprobs;
  for (const TokenInfo& token : tokens) {
    texts.push_back(json::value(ToValidUtf8(token.bytes)));
    logprobs.push_back(FiniteLogprob(token.record.logprob));
  }
  return json::object{{"tokens", std::move(texts)},
                      {"token_logprobs", std::move(logprobs)},
                      {"top_logprobs", nullptr},
                      {"text_offset", nullptr}};
}

json::value Routing(std::span<const TokenInfo> tokens) {
  json::array list;
  for (const TokenInfo& token : tokens) {
    list.push_back(json::object{{"id", token.record.id},
                                {"text", ToValidUtf8(token.text)},
                                {"author", AuthorName(token.record.author)},
                                {"entropy", FiniteEntropy(token.record.entropy)}});
  }
  return json::object{{"tokens", std::move(list)}};
}

json::object Envelope(const ReplyHeader& header, const char* object) {
  json::object body;
  body["id"] = header.id;
  body["object"] = object;
  body["created"] = header.created;
  body["model"] = header.model;
  body["system_fingerprint"] = header.system_fingerprint;
  return body;
}

const char* EventObject(const ReplyHeader& header) {
  return header.endpoint == OpenAiEndpoint::kChat ? "chat.completion.chunk" : "text_completion";
}

json::object Choice(const ReplyHeader& header, int index, std::span<const TokenInfo> tokens) {
  json::object choice{{"index", index}};
  choice["logprobs"] = nullptr;
  if (header.logprobs && !tokens.empty()) {
    choice["logprobs"] = header.endpoint == OpenAiEndpoint::kChat ? ChatLogprobs(tokens)
                                                                  : CompletionLogprobs(tokens);
  }
  if (header.return_routing && !tokens.empty()) choice["routing"] = Routing(tokens);
  choice["finish_reason"] = nullptr;
  return choice;
}

json::object Usage(const UsageCounts& usage) {
  json::object routing{{"small_tokens", usage.small_tokens}, {"large_tokens", usage.large_tokens}};
  routing["service_mode"] = usage.service_mode();
  if (usage.degraded) routing["degraded"] = true;
  json::object body;
  body["prompt_tokens"] = usage.prompt_tokens;
  body["completion_tokens"] = usage.completion_tokens();
  body["total_tokens"] = usage.prompt_tokens + usage.completion_tokens();
  body["prompt_tokens_details"] = json::object{{"cached_tokens", usage.cached_tokens}};
  body["routing"] = std::move(routing);
  return body;
}

std::string EventWith(const ReplyHeader& header, json::object choice) {
  json::object body = Envelope(header, EventObject(header));
  body["choices"] = json::array{std::move(choice)};
  if (header.include_usage) body["usage"] = nullptr;
  return PlainJson(body);
}

json::value TextOrNull(const std::string& text) {
  if (text.empty()) return nullptr;
  return json::value(ToValidUtf8(text));
}

}  // namespace

std::string ErrorJson(const ApiError& error) {
  json::object body;
  body["message"] = ToValidUtf8(error.message);
  body["type"] = error.type;
  body["param"] = TextOrNull(error.param);
  body["code"] = TextOrNull(error.code);
  for (const auto& [name, value] : error.numbers) body[name] = value;
  return PlainJson(json::object{{"error", std::move(body)}});
}

std::string DeltaEvent(const ReplyHeader& header, int index, std::string_view text,
                       std::span<const TokenInfo> tokens, bool first) {
  json::object choice = Choice(header, index, tokens);
  if (header.endpoint == OpenAiEndpoint::kChat) {
    json::object delta;
    if (first) delta["role"] = "assistant";
    delta["content"] = ToValidUtf8(text);
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = ToValidUtf8(text);
  }
  return EventWith(header, std::move(choice));
}

std::string FinishEvent(const ReplyHeader& header, int index, FinishReason reason, bool first) {
  json::object choice = Choice(header, index, {});
  choice["finish_reason"] = FinishReasonName(reason);
  if (header.endpoint == OpenAiEndpoint::kChat) {
    json::object delta;
    if (first) {
      delta["role"] = "assistant";
      delta["content"] = "";
    }
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = "";
  }
  return EventWith(header, std::move(choice));
}

std::string UsageEvent(const ReplyHeader& header, const UsageCounts& usage) {
  json::object body = Envelope(header, EventObject(header));
  body["choices"] = json::array();
  body["usage"] = Usage(usage);
  return PlainJson(body);
}

std::string WholeReply(const ReplyHeader& header, std::span<const ChoiceReply> choices,
                       const UsageCounts& usage) {
  const bool chat = header.endpoint == OpenAiEndpoint::kChat;
  json::array list;
  for (const ChoiceReply& reply : choices) {
    json::object choice = Choice(header, static_cast<int>(list.size()), reply.tokens);
    choice["finish_reason"] = FinishReasonName(reply.reason);
    std::string text = ToValidUtf8(reply.text);
    if (chat) {
      choice["message"] =
          json::object{{"role", "assistant"}, {"content", std::move(text)}, {"refusal", nullptr}};
    } else {
      choice["text"] = std::move(text);
    }
    list.push_back(std::move(choice));
  }
  json::object body = Envelope(header, chat ? "chat.completion" : "text_completion");
  body["choices"] = std::move(list);
  body["usage"] = Usage(usage);
  return PlainJson(body);
}

}  // namespace tokenrouter
