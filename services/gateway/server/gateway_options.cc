#include "services/gateway/server/gateway_options.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libs/config/settings.h"
#include "libs/routing/algorithms/algorithm_registry.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

// Values whose flag is not the type of their field.
struct RawOptions {
  std::string aliases;
  std::string default_parameters = "threshold=0.45";
  double idle_seconds = 75;
  double write_seconds = 60;
  double ping_seconds = 15;
  double drain_seconds = 15;
};

void Register(GatewayOptions* options, RawOptions* raw, Settings* settings) {
  settings->Add("http", &options->http, "host:port of the HTTP interface; port 0 picks one");
  settings->Add("grpc", &options->grpc, "host:port of the gRPC interface");
  settings->Add("scheduler", &options->scheduler, "host:port of the scheduler");
  settings->Add("admin", &options->admin, "host:port of /metrics, /livez and /readyz");
  settings->Add("tokenizer", &options->tokenizer, "a .gguf file or a Hugging Face folder");
  settings->Add("pair", &options->intake.pair, "name of the model pair at the scheduler");
  settings->Add("model_name", &options->intake.model_name, "name of the pair for clients");
  settings->Add("aliases", &raw->aliases, "further names of it, separated by commas");
  settings->Add("default_algorithm", &options->intake.default_routing.algorithm,
                "routing algorithm of requests that name none");
  settings->Add("default_parameters", &raw->default_parameters,
                "its parameters, e.g. threshold=0.45,window=4");
  settings->Add("gateway_id", &options->gateway_id, "name at the scheduler; empty: drawn");
  settings->AddChoice("log_level", &options->log_level, {"debug", "info", "warning", "error"},
                      "least severe lines to log");
  settings->Add("max_connections", &options->max_connections, 1, 1 << 16, "HTTP connections");
  settings->Add("max_requests", &options->max_requests, 1, 1 << 16, "generations at once");
  settings->Add("http_threads", &options->http_threads, 1, 64, "threads for HTTP and text");
  settings->Add("max_body_bytes", &options->max_body_bytes, int64_t{1024}, int64_t{1} << 30,
                "largest request body");
  settings->Add("max_body_budget_bytes", &options->max_body_budget_bytes, int64_t{1024},
                int64_t{1} << 40, "of all request bodies being read");
  settings->Add("idle_seconds", &raw->idle_seconds, 0.1, 86400, "before an idle connection closes");
  settings->Add("write_seconds", &raw->write_seconds, 0.1, 86400,
                "before a client that reads nothing is dropped");
  settings->Add("ping_seconds", &raw->ping_seconds, 0.1, 86400, "silence before a comment line");
  settings->Add("drain_seconds", &raw->drain_seconds, 0, 86400,
                "after SIGTERM for running requests to end");
}

}  // namespace

absl::StatusOr<std::optional<GatewayOptions>> ParseGatewayOptions(int argc,
                                                                  const char* const* argv) {
  GatewayOptions options;
  RawOptions raw;
  Settings settings("gateway", "Serves clients of a model pair over HTTP (OpenAI) and gRPC");
  Register(&options, &raw, &settings);
  TR_ASSIGN_OR_RETURN(const bool goes_on, settings.Parse(argc, argv));
  if (!goes_on) return std::optional<GatewayOptions>();
  if (options.tokenizer.empty()) {
    return absl::InvalidArgumentError(
        "--tokenizer is empty; allowed: a .gguf file or a Hugging Face folder");
  }
  for (const absl::string_view alias : absl::StrSplit(raw.aliases, ',', absl::SkipWhitespace())) {
    options.intake.aliases.emplace_back(absl::StripAsciiWhitespace(alias));
  }
  const auto parameters = ParseRoutingParameters(raw.default_parameters);
  if (!parameters.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--default_parameters: ", parameters.status().message()));
  }
  options.intake.default_routing.parameters = *parameters;
  const auto algorithm = CreateAlgorithm(options.intake.default_routing.algorithm, *parameters);
  if (!algorithm.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--default_algorithm/--default_parameters: ", algorithm.status().message()));
  }
  if (options.max_body_budget_bytes < options.max_body_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max_body_budget_bytes is ", options.max_body_budget_bytes,
                     "; allowed: at least --max_body_bytes, ", options.max_body_bytes));
  }
  options.idle_timeout = absl::Seconds(raw.idle_seconds);
  options.write_timeout = absl::Seconds(raw.write_seconds);
  options.ping_interval = absl::Seconds(raw.ping_seconds);
  options.drain = absl::Seconds(raw.drain_seconds);
  return std::optional<GatewayOptions>(std::move(options));
}

}  // namespace tokenrouter
