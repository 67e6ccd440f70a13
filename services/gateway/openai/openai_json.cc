#include "services/gateway/openai/openai_json.h"

#include <algorithm>
#include <boost/json.hpp>
#include <iterator>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "services/gateway/errors/api_error.h"
#include "services/gateway/openai/json_fields.h"
#include "services/gateway/openai/openai_prompt.h"
#include "services/gateway/text/absl_view.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr int32_t kDefaultCompletionTokens = 16;  // OpenAI's own default of /v1/completions.
constexpr size_t kMaxJsonDepth = 32;

absl::StatusOr<json::value> ParseJson(std::string_view body) {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  json::stream_parser parser(json::storage_ptr(), options);
  json::error_code error;
  const size_t consumed = parser.write_some(body.data(), body.size(), error);
  if (!error) {
    parser.finish(error);
    if (!error && consumed < body.size()) error = json::error::extra_data;
  }
  if (error) {
    const std::string detail = error.message();
    return InvalidField("",
                        absl::StrCat("the body is not valid JSON: ", detail, " at byte ", consumed,
                                     " of ", body.size()),
                        "invalid_json");
  }
  json::value value = parser.release();
  if (!value.is_object()) {
    return InvalidField("",
                        absl::StrCat("the body must be a JSON object, got ", JsonKindName(value)));
  }
  return value;
}

absl::Status SetFloat(const JsonFields& body, std::string_view name, float* field) {
  TR_ASSIGN_OR_RETURN(const auto number, body.Number(name));
  if (number) *field = static_cast<float>(*number);
  return absl::OkStatus();
}

absl::Status ParseLogitBias(const JsonFields& body, SamplingParameters* sampling) {
  TR_ASSIGN_OR_RETURN(const json::object* bias, body.Object("logit_bias"));
  if (bias == nullptr) return absl::OkStatus();
  if (bias->size() > kMaxLogitBias) {
    return InvalidField("logit_bias", absl::StrCat("logit_bias has ", bias->size(),
                                                   " entries; allowed: at most ", kMaxLogitBias));
  }
  const JsonFields fields(*bias, "logit_bias.");
  for (const auto& entry : *bias) {
    const std::string key(entry.key());
    TokenId id = 0;
    if (!absl::SimpleAtoi(key, &id) || id < 0) {
      return InvalidField("logit_bias",
                          absl::StrCat("logit_bias has the key ", ShownJson(json::value(key)),
                                       "; allowed: token ids as strings, >= 0"));
    }
    TR_ASSIGN_OR_RETURN(const auto value, fields.Number(key));
    if (value) sampling->logit_bias.emplace_back(id, static_cast<float>(*value));
  }
  return absl::OkStatus();
}

absl::Status ParseSampling(const JsonFields& body, GenerationRequest* request) {
  SamplingParameters* sampling = &request->sampling;
  TR_RETURN_IF_ERROR(SetFloat(body, "temperature", &sampling->temperature));
  TR_RETURN_IF_ERROR(SetFloat(body, "top_p", &sampling->top_p));
  TR_RETURN_IF_ERROR(SetFloat(body, "min_p", &sampling->min_p));
  TR_RETURN_IF_ERROR(SetFloat(body, "frequency_penalty", &sampling->frequency_penalty));
  TR_RETURN_IF_ERROR(SetFloat(body, "presence_penalty", &sampling->presence_penalty));
  TR_RETURN_IF_ERROR(SetFloat(body, "repetition_penalty", &sampling->repetition_penalty));
  // -1 is how some clients write "no limit".
  TR_ASSIGN_OR_RETURN(const auto top_k, body.Integer("top_k", -1, kMaxInt32));
  if (top_k) sampling->top_k = static_cast<int32_t>(std::max<int64_t>(*top_k, 0));
  TR_ASSIGN_OR_RETURN(const auto seed, body.Integer("seed", std::numeric_limits<int64_t>::min(),
                                                    std::numeric_limits<int64_t>::max()));
  if (seed) request->seed = static_cast<uint64_t>(*seed);
  TR_RETURN_IF_ERROR(ParseLogitBias(body, sampling));
  return absl::OkStatus();
}

absl::Status ParseStops(const JsonFields& body, GenerationRequest* request) {
  const json::value* stop = body.Find("stop");
  if (stop != nullptr && stop->is_string()) {
    request->stop.emplace_back(stop->get_string());
  } else if (stop != nullptr && stop->is_array()) {
    for (const json::value& entry : stop->get_array()) {
      if (!entry.is_string()) return body.WrongType("stop", entry, "a string or strings");
      request->stop.emplace_back(entry.get_string());
    }
  } else if (stop != nullptr) {
    return body.WrongType("stop", *stop, "a string or an array of strings");
  }
  if (const json::value* ids = body.Find("stop_token_ids")) {
    TR_ASSIGN_OR_RETURN(request->stop_token_ids, ParseTokenIds("stop_token_ids", *ids));
  }
  TR_ASSIGN_OR_RETURN(const auto ignore_eos, body.Bool("ignore_eos"));
  request->ignore_eos = ignore_eos.value_or(false);
  return absl::OkStatus();
}

absl::Status ParseLengths(const JsonFields& body, OpenAiEndpoint endpoint,
                          GenerationRequest* request) {
  TR_ASSIGN_OR_RETURN(const auto old_name, body.Integer("max_tokens", 1, kMaxInt32));
  TR_ASSIGN_OR_RETURN(const auto new_name, body.Integer("max_completion_tokens", 1, kMaxInt32));
  if (old_name && new_name && *old_name != *new_name) {
    return InvalidField("max_completion_tokens",
                        absl::StrCat("max_tokens is ", *old_name, " and max_completion_tokens is ",
                                     *new_name, "; give one of them"));
  }
  const auto length = new_name ? new_name : old_name;
  if (length) {
    request->max_new_tokens = static_cast<int32_t>(*length);
  } else if (endpoint == OpenAiEndpoint::kCompletions) {
    request->default_max_new_tokens = kDefaultCompletionTokens;
  }
  TR_ASSIGN_OR_RETURN(const auto minimum, body.Integer("min_tokens", 0, kMaxInt32));
  request->min_new_tokens = static_cast<int32_t>(minimum.value_or(0));
  return absl::OkStatus();
}

// The fields of `routing` other than the algorithm and its parameters.
constexpr const char* kServiceFields[] = {"service_mode", "max_defer_ms", "ttft_slo_ms",
                                          "token_slo_ms"};

bool IsServiceField(std::string_view name) {
  return std::find(std::begin(kServiceFields), std::end(kServiceFields), name) !=
         std::end(kServiceFields);
}

absl::Status SetBound(const JsonFields& routing, std::string_view name, int32_t* bound) {
  TR_ASSIGN_OR_RETURN(const auto value, routing.Integer(name, 0, kMaxServiceBoundMs));
  if (value) *bound = static_cast<int32_t>(*value);
  return absl::OkStatus();
}

absl::Status ParseService(const JsonFields& routing, GenerationRequest* request) {
  TR_ASSIGN_OR_RETURN(const auto mode, routing.String("service_mode"));
  if (mode == "routed") {
    request->service_mode = api::SERVICE_MODE_ROUTED;
  } else if (mode == "large_alone") {
    request->service_mode = api::SERVICE_MODE_LARGE_ALONE;
  } else if (mode && mode != "auto") {
    return InvalidField("routing.service_mode",
                        absl::StrCat("routing.service_mode is ", ShownJson(json::value(*mode)),
                                     "; allowed: \"auto\", \"routed\", \"large_alone\""));
  }
  TR_RETURN_IF_ERROR(SetBound(routing, "max_defer_ms", &request->bounds.max_defer_ms));
  TR_RETURN_IF_ERROR(SetBound(routing, "ttft_slo_ms", &request->bounds.ttft_slo_ms));
  return SetBound(routing, "token_slo_ms", &request->bounds.token_slo_ms);
}

absl::Status ParseRouting(const JsonFields& body, GenerationRequest* request) {
  TR_ASSIGN_OR_RETURN(const auto return_routing, body.Bool("return_routing"));
  request->return_routing = return_routing.value_or(false);
  TR_ASSIGN_OR_RETURN(const json::object* routing, body.Object("routing"));
  if (routing == nullptr) return absl::OkStatus();
  const JsonFields fields(*routing, "routing.");
  TR_RETURN_IF_ERROR(ParseService(fields, request));
  TR_ASSIGN_OR_RETURN(const auto algorithm, fields.String("algorithm"));
  const bool only_service =
      !routing->empty() && std::all_of(routing->begin(), routing->end(), [](const auto& entry) {
        return IsServiceField(entry.key());
      });
  // The service options may also be set for the pair's default algorithm.
  if (!algorithm && only_service) return absl::OkStatus();
  if (!algorithm) return InvalidField("routing.algorithm", "routing.algorithm is missing");
  RoutingChoice choice{*algorithm, {}};
  for (const auto& entry : *routing) {
    const std::string name(entry.key());
    if (name == "algorithm" || IsServiceField(name)) continue;
    TR_ASSIGN_OR_RETURN(const auto value, fields.Number(name));
    if (value) choice.parameters[name] = *value;
  }
  request->routing = std::move(choice);
  return absl::OkStatus();
}

absl::Status ParseLogprobs(const JsonFields& body, OpenAiEndpoint endpoint,
                           GenerationRequest* request) {
  if (endpoint == OpenAiEndpoint::kCompletions) {
    // There, logprobs is the number of alternatives; the chosen token's own comes with 0.
    TR_ASSIGN_OR_RETURN(const auto alternatives, body.Integer("logprobs", 0, 20));
    if (alternatives.value_or(0) > 0) {
      return InvalidField("logprobs", absl::StrCat("logprobs is ", *alternatives,
                                                   "; allowed: 0 (alternatives are not supported "
                                                   "yet)"));
    }
    request->logprobs = alternatives.has_value();
    return absl::OkStatus();
  }
  TR_ASSIGN_OR_RETURN(const auto logprobs, body.Bool("logprobs"));
  request->logprobs = logprobs.value_or(false);
  TR_ASSIGN_OR_RETURN(const auto top, body.Integer("top_logprobs", 0, 20));
  if (top.value_or(0) > 0) {
    return InvalidField("top_logprobs",
                        absl::StrCat("top_logprobs is ", *top, "; allowed: 0 (not supported yet)"));
  }
  return absl::OkStatus();
}

absl::Status NotSupported(std::string_view name) {
  return InvalidField(name, absl::StrCat(View(name), " is not supported yet"), "not_supported");
}

absl::Status RefuseUnsupported(const JsonFields& body) {
  TR_ASSIGN_OR_RETURN(const auto best_of, body.Integer("best_of", 1, 128));
  if (best_of.value_or(1) != 1) {
    return InvalidField("best_of", absl::StrCat("best_of is ", *best_of, "; allowed: 1"),
                        "not_supported");
  }
  for (const char* list : {"tools", "functions"}) {
    const json::value* value = body.Find(list);
    if (value == nullptr) continue;
    if (!value->is_array()) return body.WrongType(list, *value, "an array");
    if (!value->get_array().empty()) return NotSupported(list);
  }
  const json::value* choice = body.Find("tool_choice");
  if (choice != nullptr && *choice != "none" && *choice != "auto") {
    return NotSupported("tool_choice");
  }
  TR_ASSIGN_OR_RETURN(const json::object* format, body.Object("response_format"));
  if (format != nullptr) {
    TR_ASSIGN_OR_RETURN(const auto type, JsonFields(*format, "response_format.").String("type"));
    if (type != "text") return NotSupported("response_format");
  }
  TR_ASSIGN_OR_RETURN(const auto echo, body.Bool("echo"));
  if (echo.value_or(false)) return NotSupported("echo");
  TR_ASSIGN_OR_RETURN(const auto suffix, body.String("suffix"));
  if (suffix.has_value() && !suffix->empty()) return NotSupported("suffix");
  return absl::OkStatus();
}

absl::Status ParseStreaming(const JsonFields& body, OpenAiRequest* request) {
  TR_ASSIGN_OR_RETURN(const auto stream, body.Bool("stream"));
  request->stream = stream.value_or(false);
  TR_ASSIGN_OR_RETURN(const json::object* options, body.Object("stream_options"));
  if (options == nullptr) return absl::OkStatus();
  if (!request->stream) {
    return InvalidField("stream_options", "stream_options is allowed only with stream: true");
  }
  TR_ASSIGN_OR_RETURN(const auto usage,
                      JsonFields(*options, "stream_options.").Bool("include_usage"));
  request->include_usage = usage.value_or(false);
  return absl::OkStatus();
}

absl::Status ParseInput(const JsonFields& body, OpenAiRequest* request) {
  GenerationRequest* generation = &request->generation;
  if (request->endpoint == OpenAiEndpoint::kChat) {
    TR_ASSIGN_OR_RETURN(generation->input, ParseMessages(body));
    TR_ASSIGN_OR_RETURN(const json::object* kwargs, body.Object("chat_template_kwargs"));
    if (kwargs != nullptr) generation->template_kwargs_json = json::serialize(*kwargs);
    return absl::OkStatus();
  }
  TR_ASSIGN_OR_RETURN(auto prompt, ParsePrompt(body));
  if (auto* text = std::get_if<std::string>(&prompt)) {
    generation->input = std::move(*text);
  } else {
    generation->input = std::move(std::get<std::vector<TokenId>>(prompt));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OpenAiRequest> ParseOpenAiRequest(OpenAiEndpoint endpoint, std::string_view text) {
  TR_ASSIGN_OR_RETURN(const json::value value, ParseJson(text));
  const JsonFields body(value.get_object(), "");
  OpenAiRequest request;
  request.endpoint = endpoint;
  TR_ASSIGN_OR_RETURN(const auto model, body.String("model"));
  if (!model) return InvalidField("model", "model is missing");
  request.generation.model = *model;
  TR_RETURN_IF_ERROR(ParseInput(body, &request));
  TR_ASSIGN_OR_RETURN(const auto choices, body.Integer("n", 1, kMaxChoices));
  request.choices = static_cast<int>(choices.value_or(1));
  TR_RETURN_IF_ERROR(ParseStreaming(body, &request));
  TR_RETURN_IF_ERROR(ParseLengths(body, endpoint, &request.generation));
  TR_RETURN_IF_ERROR(ParseSampling(body, &request.generation));
  TR_RETURN_IF_ERROR(ParseStops(body, &request.generation));
  TR_RETURN_IF_ERROR(ParseRouting(body, &request.generation));
  TR_RETURN_IF_ERROR(ParseLogprobs(body, endpoint, &request.generation));
  TR_RETURN_IF_ERROR(RefuseUnsupported(body));
  return request;
}

absl::StatusOr<TokenizeRequest> ParseTokenizeRequest(std::string_view text) {
  TR_ASSIGN_OR_RETURN(const json::value value, ParseJson(text));
  const JsonFields body(value.get_object(), "");
  TokenizeRequest request;
  TR_ASSIGN_OR_RETURN(const auto model, body.String("model"));
  request.model = model.value_or("");
  TR_ASSIGN_OR_RETURN(const auto prompt, body.String("prompt"));
  if (!prompt) return InvalidField("prompt", "prompt is missing");
  request.prompt = *prompt;
  TR_ASSIGN_OR_RETURN(const auto special, body.Bool("add_special_tokens"));
  request.add_special_tokens = special.value_or(true);
  return request;
}

absl::StatusOr<DetokenizeRequest> ParseDetokenizeRequest(std::string_view text) {
  TR_ASSIGN_OR_RETURN(const json::value value, ParseJson(text));
  const JsonFields body(value.get_object(), "");
  DetokenizeRequest request;
  TR_ASSIGN_OR_RETURN(const auto model, body.String("model"));
  request.model = model.value_or("");
  const json::value* tokens = body.Find("tokens");
  if (tokens == nullptr) return InvalidField("tokens", "tokens is missing");
  TR_ASSIGN_OR_RETURN(request.tokens, ParseTokenIds("tokens", *tokens));
  return request;
}

}  // namespace tokenrouter
