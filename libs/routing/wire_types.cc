#include "libs/routing/wire_types.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

absl::Status UnknownEnum(const char* field, int value) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " has the value ", value, ", which this version does not know"));
}

}  // namespace

api::Role ToWire(Role role) { return role == Role::kSmall ? api::ROLE_SMALL : api::ROLE_LARGE; }

absl::StatusOr<Role> FromWire(api::Role role) {
  if (role == api::ROLE_SMALL) return Role::kSmall;
  if (role == api::ROLE_LARGE) return Role::kLarge;
  return UnknownEnum("role", role);
}

api::FinishReason ToWire(FinishReason reason) {
  return static_cast<api::FinishReason>(static_cast<int>(reason));  // The numbers are the same.
}

absl::StatusOr<FinishReason> FromWire(api::FinishReason reason) {
  if (reason < api::FINISH_REASON_UNSPECIFIED || reason > api::FINISH_REASON_ERROR) {
    return UnknownEnum("finish reason", reason);
  }
  return static_cast<FinishReason>(static_cast<int>(reason));
}

wire::Window ToWire(const Window& window) {
  wire::Window wire;
  switch (window.kind) {
    case Window::Kind::kTokens:
      wire.set_kind(wire::Window::KIND_TOKENS);
      wire.set_tokens(window.tokens);
      break;
    case Window::Kind::kUntilEnd:
      wire.set_kind(wire::Window::KIND_UNTIL_END);
      break;
    case Window::Kind::kDelimiter:
      wire.set_kind(wire::Window::KIND_DELIMITER);
      wire.mutable_delimiters()->Add(window.delimiters.begin(), window.delimiters.end());
      break;
    case Window::Kind::kOwnRule:
      wire.set_kind(wire::Window::KIND_OWN_RULE);
      break;
  }
  return wire;
}

absl::StatusOr<Window> FromWire(const wire::Window& window) {
  switch (window.kind()) {
    case wire::Window::KIND_TOKENS:
      if (window.tokens() < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("window.tokens is ", window.tokens(), "; allowed: >= 1"));
      }
      return Window::Tokens(window.tokens());
    case wire::Window::KIND_UNTIL_END:
      return Window::UntilEnd();
    case wire::Window::KIND_DELIMITER: {
      if (window.delimiters().empty()) {
        return absl::InvalidArgumentError("window.delimiters is empty; allowed: at least one id");
      }
      return Window{
          Window::Kind::kDelimiter, 0, {window.delimiters().begin(), window.delimiters().end()}};
    }
    case wire::Window::KIND_OWN_RULE:
      return Window::OwnRule();
    default:
      return UnknownEnum("window.kind", window.kind());
  }
}

api::SamplingParameters ToWire(const SamplingParameters& p) {
  api::SamplingParameters wire;
  wire.set_temperature(p.temperature);
  wire.set_top_k(p.top_k);
  wire.set_top_p(p.top_p);
  wire.set_min_p(p.min_p);
  wire.set_frequency_penalty(p.frequency_penalty);
  wire.set_presence_penalty(p.presence_penalty);
  wire.set_repetition_penalty(p.repetition_penalty);
  for (const auto& [id, bias] : p.logit_bias) (*wire.mutable_logit_bias())[id] = bias;
  wire.set_seed(p.seed);
  return wire;
}

absl::StatusOr<SamplingParameters> FromWire(const api::SamplingParameters& wire, uint32_t choice) {
  SamplingParameters p;
  if (wire.has_temperature()) p.temperature = wire.temperature();
  if (wire.has_top_k()) p.top_k = wire.top_k();
  if (wire.has_top_p()) p.top_p = wire.top_p();
  if (wire.has_min_p()) p.min_p = wire.min_p();
  if (wire.has_frequency_penalty()) p.frequency_penalty = wire.frequency_penalty();
  if (wire.has_presence_penalty()) p.presence_penalty = wire.presence_penalty();
  if (wire.has_repetition_penalty()) p.repetition_penalty = wire.repetition_penalty();
  p.logit_bias.assign(wire.logit_bias().begin(), wire.logit_bias().end());
  std::sort(p.logit_bias.begin(), p.logit_bias.end());  // A map's order is not the same everywhere.
  p.seed = wire.seed();
  p.choice = choice;
  TR_RETURN_IF_ERROR(Validate(p));
  return p;
}

wire::StopRules ToWire(const StopRules& rules) {
  wire::StopRules wire;
  wire.mutable_stop_ids()->Add(rules.stop_ids.begin(), rules.stop_ids.end());
  wire.set_ignore_eos(rules.ignore_eos);
  wire.set_min_new_tokens(rules.min_new_tokens);
  wire.set_max_new_tokens(rules.max_new_tokens);
  return wire;
}

absl::StatusOr<StopRules> FromWire(const wire::StopRules& wire) {
  if (wire.max_new_tokens() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_new_tokens is ", wire.max_new_tokens(), "; allowed: >= 1"));
  }
  if (wire.min_new_tokens() < 0 || wire.min_new_tokens() > wire.max_new_tokens()) {
    return absl::InvalidArgumentError(absl::StrCat("min_new_tokens is ", wire.min_new_tokens(),
                                                   "; allowed: [0, ", wire.max_new_tokens(), "]"));
  }
  StopRules rules;
  rules.stop_ids.assign(wire.stop_ids().begin(), wire.stop_ids().end());
  rules.ignore_eos = wire.ignore_eos();
  rules.min_new_tokens = wire.min_new_tokens();
  rules.max_new_tokens = wire.max_new_tokens();
  return rules;
}

std::map<std::string, double> ParametersFromWire(const api::RoutingParameters& routing) {
  return {routing.parameters().begin(), routing.parameters().end()};
}

}  // namespace tokenrouter
