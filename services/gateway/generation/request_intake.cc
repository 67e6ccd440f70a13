#include "services/gateway/generation/request_intake.h"

#include <algorithm>
#include <array>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "libs/routing/algorithms/algorithm_registry.h"
#include "libs/routing/wire_types.h"
#include "libs/status/status_macros.h"
#include "services/gateway/errors/api_error.h"
#include "services/gateway/text/absl_view.h"
#include "services/gateway/text/prompt_guard.h"
#include "services/gateway/text/utf8.h"

namespace tokenrouter {
namespace {

constexpr size_t kMaxRequestIdBytes = 128;
constexpr size_t kShownNameBytes = 64;
constexpr size_t kMaxMessages = 4096;
constexpr size_t kMaxStopTokenIds = 128;
constexpr std::array<std::string_view, 5> kRoles = {"system", "user", "assistant", "tool",
                                                    "developer"};

const char* InputField(const GenerationRequest& request) {
  return std::holds_alternative<std::vector<ChatTurn>>(request.input) ? "messages" : "prompt";
}

// `has` is "has", or "has at least" where the prompt was not counted to its end.
absl::Status ContextExceeded(const GenerationRequest& request, const char* has, int64_t prompt,
                             int64_t max_new, int64_t limit) {
  const char* field = InputField(request);
  absl::Status status =
      InvalidField(field,
                   absl::StrCat("the context of this model pair is ", limit, " tokens, but ", field,
                                " ", has, " ", prompt, " and ", max_new,
                                " more were asked for; shorten the prompt or lower "
                                "max_tokens"),
                   "context_length_exceeded");
  status = WithNumber(std::move(status), "prompt_tokens", prompt);
  status = WithNumber(std::move(status), "max_tokens", max_new);
  return WithNumber(std::move(status), "limit", limit);
}

// The number of tokens that may be generated.
absl::StatusOr<int32_t> FitLength(const GenerationRequest& request, int64_t prompt, int64_t limit) {
  const int64_t remaining = limit - prompt;
  const int64_t wanted = request.max_new_tokens.value_or(1);
  if (wanted > remaining) return ContextExceeded(request, "has", prompt, wanted, limit);
  if (request.max_new_tokens) return *request.max_new_tokens;
  const int64_t fallback =
      request.default_max_new_tokens > 0 ? request.default_max_new_tokens : remaining;
  return static_cast<int32_t>(std::min(fallback, remaining));
}

// "temperature is 3; allowed: [0, 2]" names its field first.
absl::Status CheckSampling(const SamplingParameters& sampling) {
  absl::Status status = Validate(sampling);
  if (status.ok()) return status;
  const absl::string_view message = status.message();
  const std::string field(message.substr(0, message.find(' ')));
  return WithParam(std::move(status), field);
}

absl::Status CheckTurns(const std::vector<ChatTurn>& turns) {
  if (turns.empty() || turns.size() > kMaxMessages) {
    return InvalidField("messages", absl::StrCat("messages has ", turns.size(),
                                                 " entries; allowed: 1 to ", kMaxMessages));
  }
  for (size_t i = 0; i < turns.size(); ++i) {
    const std::string& role = turns[i].role;
    if (std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end()) continue;
    const std::string name = absl::StrCat("messages[", i, "].role");
    return InvalidField(name,
                        absl::StrCat(name, " is \"", View(Utf8Prefix(role, kShownNameBytes)),
                                     "\"; allowed: system, user, assistant, tool, developer"));
  }
  return absl::OkStatus();
}

// Creates the matcher of the stop strings.
absl::StatusOr<StopMatcher> CheckStops(const GenerationRequest& request) {
  if (request.stop_token_ids.size() > kMaxStopTokenIds) {
    return InvalidField("stop_token_ids",
                        absl::StrCat("stop_token_ids has ", request.stop_token_ids.size(),
                                     " ids; allowed: at most ", kMaxStopTokenIds));
  }
  absl::StatusOr<StopMatcher> stops = StopMatcher::Create(request.stop);
  if (!stops.ok()) return WithParam(stops.status(), "stop");
  return stops;
}

api::RoutingParameters ToWireRouting(const RoutingChoice& choice) {
  api::RoutingParameters wire;
  wire.set_algorithm(choice.algorithm);
  for (const auto& [name, value] : choice.parameters) (*wire.mutable_parameters())[name] = value;
  return wire;
}

}  // namespace

absl::Status CheckTokenId(const char* field, TokenId id, int32_t usable_ids) {
  if (id >= 0 && id < usable_ids) return absl::OkStatus();
  return InvalidField(
      field, absl::StrCat(field, " has the token id ", id, "; allowed: [0, ", usable_ids - 1, "]"));
}

RequestIntake::RequestIntake(IntakeOptions options, const TextModel* model,
                             std::function<uint64_t()> draw_seed)
    : options_(std::move(options)), model_(model), draw_seed_(std::move(draw_seed)) {}

absl::Status RequestIntake::CheckModel(std::string_view name) const {
  const auto& aliases = options_.aliases;
  if (name == options_.model_name ||
      std::find(aliases.begin(), aliases.end(), name) != aliases.end()) {
    return absl::OkStatus();
  }
  std::string known = options_.model_name;
  for (const std::string& alias : aliases) absl::StrAppend(&known, ", ", alias);
  absl::Status status =
      absl::NotFoundError(absl::StrCat("the model \"", View(Utf8Prefix(name, kShownNameBytes)),
                                       "\" does not exist; known: ", known));
  return WithCode(WithParam(std::move(status), "model"), "model_not_found");
}

absl::StatusOr<std::string> RequestIntake::Render(const std::vector<ChatTurn>& turns,
                                                  const std::string& template_kwargs_json) const {
  TR_RETURN_IF_ERROR(CheckTurns(turns));
  std::vector<ChatTurn> known = turns;
  for (ChatTurn& turn : known) {
    // Newer clients call a system message "developer"; chat templates do not know that role.
    if (turn.role == "developer") turn.role = "system";
  }
  absl::StatusOr<std::string> text = model_->RenderChat(known, template_kwargs_json);
  if (!text.ok()) return WithParam(text.status(), "messages");
  return text;
}

absl::StatusOr<std::vector<TokenId>> RequestIntake::Tokenize(const GenerationRequest& request,
                                                             int64_t limit) const {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&request.input)) return *ids;
  const auto* turns = std::get_if<std::vector<ChatTurn>>(&request.input);
  absl::StatusOr<std::string> rendered;
  if (turns != nullptr) {
    rendered = Render(*turns, request.template_kwargs_json);
    if (!rendered.ok()) return rendered.status();
  }
  const std::string& text = turns != nullptr ? *rendered : std::get<std::string>(request.input);
  const auto beyond = TokensBeyond(*model_, text, limit);
  if (!beyond.ok()) return WithParam(beyond.status(), InputField(request));
  if (beyond->has_value()) {
    return ContextExceeded(request, "has at least", **beyond, request.max_new_tokens.value_or(1),
                           limit);
  }
  absl::StatusOr<std::vector<TokenId>> ids = model_->Encode(text, /*add_special=*/turns == nullptr);
  if (!ids.ok()) return WithParam(ids.status(), InputField(request));
  return ids;
}

absl::Status RequestIntake::CheckIds(const GenerationRequest& request,
                                     const std::vector<TokenId>& prompt, int32_t usable_ids) const {
  for (const TokenId id : prompt) {
    TR_RETURN_IF_ERROR(CheckTokenId(InputField(request), id, usable_ids));
  }
  for (const TokenId id : request.stop_token_ids) {
    TR_RETURN_IF_ERROR(CheckTokenId("stop_token_ids", id, usable_ids));
  }
  for (const auto& [id, bias] : request.sampling.logit_bias) {
    TR_RETURN_IF_ERROR(CheckTokenId("logit_bias", id, usable_ids));
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenRequest> RequestIntake::Prepare(const GenerationRequest& request,
                                                    const wire::PairStatus& pair) const {
  TR_RETURN_IF_ERROR(CheckModel(request.model));
  TR_RETURN_IF_ERROR(CheckSampling(request.sampling));
  const RoutingChoice& routing = request.routing.value_or(options_.default_routing);
  const auto algorithm = CreateAlgorithm(routing.algorithm, routing.parameters);
  if (!algorithm.ok()) return WithParam(algorithm.status(), "routing");
  if (pair.context_limit() <= 0) {
    absl::Status status = absl::UnavailableError(
        absl::StrCat("no worker of the pair \"", options_.pair, "\" has attached yet"));
    return WithRetryAfter(WithCode(std::move(status), "not_ready"), absl::Seconds(1));
  }

  TokenRequest result;
  TR_ASSIGN_OR_RETURN(result.stops, CheckStops(request));
  TR_ASSIGN_OR_RETURN(result.ids, Tokenize(request, pair.context_limit()));
  if (result.ids.empty()) {
    return InvalidField(InputField(request),
                        absl::StrCat(InputField(request), " has 0 tokens; allowed: at least 1"));
  }
  const int32_t usable = pair.usable_ids() > 0 ? pair.usable_ids() : model_->vocabulary_size();
  TR_RETURN_IF_ERROR(CheckIds(request, result.ids, usable));
  const auto prompt = static_cast<int64_t>(result.ids.size());
  TR_ASSIGN_OR_RETURN(const int32_t max_new, FitLength(request, prompt, pair.context_limit()));
  if (request.min_new_tokens > max_new) {
    return InvalidField("min_tokens", absl::StrCat("min_tokens is ", request.min_new_tokens,
                                                   "; allowed: [0, ", max_new, "]"));
  }

  SamplingParameters sampling = request.sampling;
  sampling.seed = request.seed ? *request.seed : draw_seed_();
  wire::GenerationSpec& spec = result.spec;
  spec.set_request_id(request.request_id);
  spec.set_pair(options_.pair);
  spec.set_prompt_length(static_cast<int32_t>(prompt));
  *spec.mutable_sampling() = ToWire(sampling);
  *spec.mutable_routing() = ToWireRouting(routing);
  *spec.mutable_stop() = ToWire(
      StopRules{request.stop_token_ids, request.ignore_eos, request.min_new_tokens, max_new});
  spec.set_string_stops(!request.stop.empty());
  spec.set_service_mode(request.service_mode);
  spec.set_max_defer_ms(request.bounds.max_defer_ms);
  spec.set_ttft_slo_ms(request.bounds.ttft_slo_ms);
  spec.set_token_slo_ms(request.bounds.token_slo_ms);
  return result;
}

uint64_t DrawSystemSeed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

absl::Status CheckRequestId(std::string_view id) {
  const bool legal = std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == ':' || c == '-';
  });
  if (legal && !id.empty() && id.size() <= kMaxRequestIdBytes) return absl::OkStatus();
  return InvalidField("X-Request-Id",
                      absl::StrCat("the request id has ", id.size(), " characters; allowed: 1 to ",
                                   kMaxRequestIdBytes, " letters, digits, '.', '_', ':' and '-'"));
}

std::string DrawRequestId() {
  return absl::StrFormat("%016x%016x", DrawSystemSeed(), DrawSystemSeed());
}

absl::StatusOr<std::map<std::string, double>> ParseRoutingParameters(std::string_view text) {
  std::map<std::string, double> parameters;
  for (const absl::string_view part : absl::StrSplit(View(text), ',', absl::SkipWhitespace())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    double value = 0.0;
    if (pair.first.empty() || !absl::SimpleAtod(pair.second, &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", part, "\" is not name=number, e.g. threshold=0.45"));
    }
    parameters[std::string(absl::StripAsciiWhitespace(pair.first))] = value;
  }
  return parameters;
}

}  // namespace tokenrouter
