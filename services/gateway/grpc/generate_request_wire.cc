#include "services/gateway/grpc/generate_request_wire.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/routing/wire_types.h"
#include "libs/status/status_macros.h"
#include "services/gateway/errors/api_error.h"

namespace tokenrouter {
namespace {

absl::Status SetInput(const api::GenerateRequest& request, GenerationRequest* result) {
  switch (request.input_case()) {
    case api::GenerateRequest::kPrompt:
      result->input = request.prompt();
      return absl::OkStatus();
    case api::GenerateRequest::kTokenIds:
      result->input =
          std::vector<TokenId>(request.token_ids().ids().begin(), request.token_ids().ids().end());
      return absl::OkStatus();
    case api::GenerateRequest::kChat: {
      std::vector<ChatTurn> turns;
      for (const api::ChatMessage& message : request.chat().messages()) {
        turns.push_back({message.role(), message.content()});
      }
      result->input = std::move(turns);
      return absl::OkStatus();
    }
    default:
      return InvalidField("input", "input is missing; allowed: prompt, chat or token_ids");
  }
}

absl::Status SetLimits(const api::GenerateRequest& request, GenerationRequest* result) {
  if (request.has_max_new_tokens()) {
    if (request.max_new_tokens() < 1) {
      return InvalidField(
          "max_new_tokens",
          absl::StrCat("max_new_tokens is ", request.max_new_tokens(), "; allowed: at least 1"));
    }
    result->max_new_tokens = request.max_new_tokens();
  }
  if (request.min_new_tokens() < 0) {
    return InvalidField(
        "min_new_tokens",
        absl::StrCat("min_new_tokens is ", request.min_new_tokens(), "; allowed: at least 0"));
  }
  result->min_new_tokens = request.min_new_tokens();
  result->stop.assign(request.stop().begin(), request.stop().end());
  result->stop_token_ids.assign(request.stop_token_ids().begin(), request.stop_token_ids().end());
  result->ignore_eos = request.ignore_eos();
  return absl::OkStatus();
}

absl::Status SetService(const api::GenerateRequest& request, GenerationRequest* result) {
  if (!api::ServiceMode_IsValid(request.service_mode())) {
    return InvalidField("service_mode",
                        absl::StrCat("service_mode is ", request.service_mode(),
                                     "; allowed: 0 (the scheduler chooses), 1 (routed), 2 (large "
                                     "alone)"));
  }
  result->service_mode = request.service_mode();
  result->bounds = {request.max_defer_ms(), request.ttft_slo_ms(), request.token_slo_ms()};
  const std::pair<const char*, int32_t> bounds[] = {{"max_defer_ms", request.max_defer_ms()},
                                                    {"ttft_slo_ms", request.ttft_slo_ms()},
                                                    {"token_slo_ms", request.token_slo_ms()}};
  for (const auto& [name, value] : bounds) {
    if (value >= 0 && value <= kMaxServiceBoundMs) continue;
    return InvalidField(
        name, absl::StrCat(name, " is ", value, "; allowed: [0, ", kMaxServiceBoundMs, "]"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GenerationRequest> FromWire(const api::GenerateRequest& request) {
  GenerationRequest result;
  result.request_id = request.request_id();
  result.model = request.model();
  TR_RETURN_IF_ERROR(SetInput(request, &result));
  TR_RETURN_IF_ERROR(SetLimits(request, &result));
  TR_ASSIGN_OR_RETURN(result.sampling, FromWire(request.sampling(), /*choice=*/0));
  if (request.sampling().has_seed()) result.seed = request.sampling().seed();
  if (request.has_routing() && !request.routing().algorithm().empty()) {
    result.routing =
        RoutingChoice{request.routing().algorithm(), ParametersFromWire(request.routing())};
  }
  TR_RETURN_IF_ERROR(SetService(request, &result));
  result.return_routing = request.return_routing();
  return result;
}

}  // namespace tokenrouter
