#include "services/gateway/openai/openai_http.h"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "libs/status/status_macros.h"
#include "services/gateway/errors/api_error.h"
#include "services/gateway/openai/openai_call.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr const char* kKnownRoutes =
    "POST /v1/chat/completions, POST /v1/completions, GET /v1/models, GET /v1/models/NAME, "
    "GET /health, GET /version, POST /tokenize, POST /detokenize";

// Limit of /tokenize, which runs on the threads that serve all requests.
constexpr size_t kMaxTokenizeBytes = 256 << 10;
// Limit of /detokenize, where an id of two bytes in the body may be a hundred bytes of text.
constexpr size_t kMaxDetokenizeIds = 64 << 10;

// Endpoint names of the metrics; unknown paths share one, so that the labels stay bounded.
std::string EndpointOf(const std::string& path) {
  for (const char* known : {"/v1/chat/completions", "/v1/completions", "/v1/models", "/health",
                            "/version", "/tokenize", "/detokenize"}) {
    if (path == known) return path;
  }
  return path.rfind("/v1/models/", 0) == 0 ? "/v1/models" : "other";
}

absl::Status WrongMethod(const HttpRequest& request, const char* allowed) {
  return WithHttpStatus(absl::InvalidArgumentError(absl::StrCat(request.path, " takes ", allowed,
                                                                ", not ", request.method)),
                        405);
}

std::unique_ptr<HttpCall> Ready(HttpStep step) {
  return std::make_unique<ReadyHttpCall>(std::move(step));
}

json::object ModelCard(const std::string& name, const wire::PairStatus& pair) {
  return json::object{{"id", name},
                      {"object", "model"},
                      {"created", 0},
                      {"owned_by", "tokenrouter"},
                      {"root", name},
                      {"parent", nullptr},
                      {"max_model_len", pair.context_limit()},
                      {"small_model", pair.small_model()},
                      {"large_model", pair.large_model()}};
}

}  // namespace

// Adds the request id to every head and counts the request once, with the status its client saw.
class OpenAiHttp::Metered final : public HttpCall {
 public:
  Metered(std::unique_ptr<HttpCall> call, std::string request_id, std::string endpoint,
          GatewayMetrics* metrics)
      : call_(std::move(call)),
        request_id_(std::move(request_id)),
        endpoint_(std::move(endpoint)),
        metrics_(metrics) {}
  ~Metered() override { metrics_->CountRequest(endpoint_, code_); }

  HttpStep Next() override {
    HttpStep step = call_->Next();
    if (step.kind == HttpStep::Kind::kReply || step.kind == HttpStep::Kind::kStreamHead) {
      code_ = step.status;
      step.headers.emplace_back("X-Request-Id", request_id_);
    }
    return step;
  }
  void OnWritten() override { call_->OnWritten(); }
  std::string_view KeepAlive() const override { return call_->KeepAlive(); }

 private:
  const std::unique_ptr<HttpCall> call_;
  const std::string request_id_;
  const std::string endpoint_;
  GatewayMetrics* const metrics_;
  int code_ = 499;
};

OpenAiHttp::OpenAiHttp(Options options, const RequestIntake* intake,
                       GenerationEnvironment environment)
    : options_(options), intake_(intake), environment_(environment) {}

std::unique_ptr<HttpCall> OpenAiHttp::Start(HttpRequest request, std::function<void()> wake) {
  std::string request_id(request.Header("X-Request-Id"));
  absl::StatusOr<std::unique_ptr<HttpCall>> call;
  if (request_id.empty()) {
    request_id = DrawRequestId();
    call = Route(request, request_id, wake);
  } else if (absl::Status status = CheckRequestId(request_id); !status.ok()) {
    request_id = DrawRequestId();
    call = std::move(status);
  } else {
    call = Route(request, request_id, wake);
  }
  std::unique_ptr<HttpCall> inner = call.ok() ? *std::move(call) : Ready(ErrorReply(call.status()));
  return std::make_unique<Metered>(std::move(inner), std::move(request_id),
                                   EndpointOf(request.path), environment_.metrics);
}

HttpStep OpenAiHttp::Refuse(const absl::Status& status) {
  HttpStep step = ErrorReply(status);
  environment_.metrics->CountRequest("refused", step.status);
  return step;
}

absl::StatusOr<std::unique_ptr<HttpCall>> OpenAiHttp::Route(const HttpRequest& request,
                                                            const std::string& request_id,
                                                            const std::function<void()>& wake) {
  const std::string& path = request.path;
  const bool is_post = path == "/v1/chat/completions" || path == "/v1/completions" ||
                       path == "/tokenize" || path == "/detokenize";
  if (is_post && request.method != "POST") return WrongMethod(request, "POST");
  if (path == "/v1/chat/completions") {
    return Complete(OpenAiEndpoint::kChat, request, request_id, wake);
  }
  if (path == "/v1/completions") {
    return Complete(OpenAiEndpoint::kCompletions, request, request_id, wake);
  }
  absl::StatusOr<HttpStep> step = HttpStep();
  if (path == "/tokenize") {
    step = Tokenize(request);
  } else if (path == "/detokenize") {
    step = Detokenize(request);
  } else if (EndpointOf(path) == "other") {
    step =
        WithCode(absl::NotFoundError(absl::StrCat("there is no such route; known: ", kKnownRoutes)),
                 "route_not_found");
  } else if (request.method != "GET") {
    step = WrongMethod(request, "GET");
  } else if (path == "/health") {
    const absl::Status health = Health();
    step = health.ok() ? JsonReply(R"({"status":"ok"})") : ErrorReply(health);
  } else if (path == "/version") {
    step = JsonReply(json::serialize(json::object{{"version", kGatewayVersion}}));
  } else if (path == "/v1/models") {
    step = Models();
  } else {
    const std::string name = path.substr(std::string("/v1/models/").size());
    TR_RETURN_IF_ERROR(intake_->CheckModel(name));
    step = JsonReply(json::serialize(ModelCard(name, environment_.port->Health().pair)));
  }
  if (!step.ok()) return step.status();
  return Ready(*std::move(step));
}

absl::Status OpenAiHttp::Admit(int generations) const {
  if (draining_) {
    absl::Status status = absl::UnavailableError("the gateway is shutting down");
    return WithRetryAfter(WithCode(std::move(status), "shutting_down"), absl::Seconds(1));
  }
  if (generations > options_.max_requests) {
    return InvalidField("n", absl::StrCat("n is ", generations, "; this gateway serves at most ",
                                          options_.max_requests, " choices at once"));
  }
  const double free = options_.max_requests - environment_.metrics->requests_in_flight.Value();
  if (generations <= free) return absl::OkStatus();
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat("the gateway serves at most ", options_.max_requests,
                   " choices of requests at once; there is capacity for ", std::max(free, 0.0),
                   ", needed: ", generations));
  return WithRetryAfter(WithCode(std::move(status), "gateway_full"), absl::Seconds(1));
}

absl::StatusOr<std::unique_ptr<HttpCall>> OpenAiHttp::Complete(OpenAiEndpoint endpoint,
                                                               const HttpRequest& request,
                                                               const std::string& request_id,
                                                               const std::function<void()>& wake) {
  TR_RETURN_IF_ERROR(Admit());
  TR_ASSIGN_OR_RETURN(OpenAiRequest parsed, ParseOpenAiRequest(endpoint, request.body));
  if (parsed.choices > 1) TR_RETURN_IF_ERROR(Admit(parsed.choices));
  parsed.generation.request_id = request_id;
  const PortHealth health = environment_.port->Health();
  TR_ASSIGN_OR_RETURN(TokenRequest tokens, intake_->Prepare(parsed.generation, health.pair));
  ReplyHeader header;
  header.endpoint = endpoint;
  header.id = absl::StrCat(endpoint == OpenAiEndpoint::kChat ? "chatcmpl-" : "cmpl-", request_id);
  header.model = parsed.generation.model;
  header.system_fingerprint = absl::StrCat("fp_", environment_.model->fingerprint());
  header.created = absl::ToUnixSeconds(absl::Now());
  header.logprobs = parsed.generation.logprobs;
  header.return_routing = parsed.generation.return_routing;
  header.include_usage = parsed.include_usage;
  header.asked_routed = parsed.generation.service_mode == api::SERVICE_MODE_ROUTED;
  TR_ASSIGN_OR_RETURN(
      auto choices, ParallelChoices::Start(std::move(tokens), parsed.choices, environment_, wake));
  return std::make_unique<OpenAiCall>(std::move(header), parsed.stream, std::move(choices));
}

absl::StatusOr<HttpStep> OpenAiHttp::Tokenize(const HttpRequest& request) const {
  TR_ASSIGN_OR_RETURN(const TokenizeRequest parsed, ParseTokenizeRequest(request.body));
  if (!parsed.model.empty()) TR_RETURN_IF_ERROR(intake_->CheckModel(parsed.model));
  if (parsed.prompt.size() > kMaxTokenizeBytes) {
    return InvalidField("prompt", absl::StrCat("prompt has ", parsed.prompt.size(),
                                               " bytes; allowed: at most ", kMaxTokenizeBytes));
  }
  TR_ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                      intake_->text().Encode(parsed.prompt, parsed.add_special_tokens));
  return JsonReply(json::serialize(
      json::object{{"count", ids.size()},
                   {"max_model_len", environment_.port->Health().pair.context_limit()},
                   {"tokens", json::array(ids.begin(), ids.end())}}));
}

absl::StatusOr<HttpStep> OpenAiHttp::Detokenize(const HttpRequest& request) const {
  TR_ASSIGN_OR_RETURN(const DetokenizeRequest parsed, ParseDetokenizeRequest(request.body));
  if (!parsed.model.empty()) TR_RETURN_IF_ERROR(intake_->CheckModel(parsed.model));
  if (parsed.tokens.size() > kMaxDetokenizeIds) {
    return InvalidField("tokens", absl::StrCat("tokens has ", parsed.tokens.size(),
                                               " ids; allowed: at most ", kMaxDetokenizeIds));
  }
  for (const TokenId id : parsed.tokens) {
    TR_RETURN_IF_ERROR(CheckTokenId("tokens", id, intake_->text().vocabulary_size()));
  }
  return JsonReply(
      json::serialize(json::object{{"prompt", intake_->text().Decode(parsed.tokens)}}));
}

HttpStep OpenAiHttp::Models() const {
  const wire::PairStatus pair = environment_.port->Health().pair;
  json::array data{ModelCard(intake_->options().model_name, pair)};
  for (const std::string& alias : intake_->options().aliases) {
    data.push_back(ModelCard(alias, pair));
  }
  return JsonReply(json::serialize(json::object{{"object", "list"}, {"data", std::move(data)}}));
}

absl::Status OpenAiHttp::Health() const {
  absl::Status status;
  const PortHealth health = environment_.port->Health();
  if (draining_) {
    status = WithCode(absl::UnavailableError("the gateway is shutting down"), "shutting_down");
  } else if (!health.up) {
    status = WithCode(absl::UnavailableError(health.trouble), "no_scheduler");
  } else if (health.pair.small_workers() == 0) {
    status =
        WithCode(absl::UnavailableError(absl::StrCat("no small worker of the pair \"",
                                                     intake_->options().pair, "\" is attached")),
                 "no_small_worker");
  }
  return status.ok() ? status : WithRetryAfter(std::move(status), absl::Seconds(1));
}

}  // namespace tokenrouter
