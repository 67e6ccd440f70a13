#include "services/gateway/server/gateway_server.h"

#include <utility>

#include "libs/concurrency/mutex.h"
#include "libs/status/status_macros.h"
#include "libs/telemetry/log.h"
#include "services/gateway/text/pair_text_model.h"

namespace tokenrouter {
namespace {

constexpr absl::Duration kReadinessInterval = absl::Milliseconds(250);
// The interval at which the drain checks whether the last request has ended.
constexpr absl::Duration kDrainPoll = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<GatewayServer>> GatewayServer::Start(const GatewayOptions& options,
                                                                    const Clock* clock) {
  TR_ASSIGN_OR_RETURN(std::unique_ptr<TextModel> model, PairTextModel::Load(options.tokenizer));
  return Start(options, std::move(model), clock);
}

absl::StatusOr<std::unique_ptr<GatewayServer>> GatewayServer::Start(
    const GatewayOptions& options, std::unique_ptr<TextModel> model, const Clock* clock) {
  std::unique_ptr<GatewayServer> server(new GatewayServer(options, std::move(model), clock));
  TR_RETURN_IF_ERROR(server->StartParts());
  return server;
}

GatewayServer::GatewayServer(const GatewayOptions& options, std::unique_ptr<TextModel> model,
                             const Clock* clock)
    : options_(options),
      clock_(clock),
      metrics_(&registry_),
      model_(std::move(model)),
      intake_(options.intake, model_.get(), DrawSystemSeed) {}

absl::Status GatewayServer::StartParts() {
  LinkOptions link;
  link.scheduler = options_.scheduler;
  link.gateway_id =
      options_.gateway_id.empty() ? "gateway-" + DrawRequestId() : options_.gateway_id;
  link.pair = options_.intake.pair;
  link.tokenizer_fingerprint = model_->fingerprint();
  link_ = SchedulerLink::Start(std::move(link), clock_, &metrics_);

  const GenerationEnvironment environment{link_.get(), model_.get(), &metrics_, clock_};
  handler_ = std::make_unique<OpenAiHttp>(
      OpenAiHttp::Options{.max_requests = options_.max_requests}, &intake_, environment);
  HttpServerOptions http;
  http.address = options_.http;
  http.threads = options_.http_threads;
  http.max_connections = options_.max_connections;
  http.max_body_bytes = static_cast<uint64_t>(options_.max_body_bytes);
  http.max_body_budget_bytes = static_cast<uint64_t>(options_.max_body_budget_bytes);
  http.idle_timeout = options_.idle_timeout;
  http.write_timeout = options_.write_timeout;
  http.ping_interval = options_.ping_interval;
  http.on_connections = [this](int open) { metrics_.connections.Set(open); };
  TR_ASSIGN_OR_RETURN(http_, HttpServer::Start(std::move(http), handler_.get()));

  service_ = std::make_unique<GenerateService>(GenerateService::Environment{
      .generation = environment,
      .intake = &intake_,
      .admit = [this] { return handler_->Admit(); },
      .post = [this](std::function<void()> work) { http_->Post(std::move(work)); },
      .max_waiting = options_.max_requests});
  TR_ASSIGN_OR_RETURN(grpc_, ServerRuntime::Start(
                                 {.address = options_.grpc,
                                  .services = {service_.get()},
                                  .max_message_bytes = static_cast<int>(options_.max_body_bytes)}));
  TR_ASSIGN_OR_RETURN(admin_, AdminServer::Start({.address = options_.admin,
                                                  .registry = &registry_,
                                                  .alive = [this] { return link_->Alive(); },
                                                  .ready = [this] { return handler_->Health(); }}));
  WatchReadiness();
  LogInfo("listening", {{"name", "http"}, {"port", http_port()}});
  LogInfo("listening", {{"name", "grpc"}, {"port", grpc_port()}});
  LogInfo("listening", {{"name", "admin"}, {"port", admin_port()}});
  return absl::OkStatus();
}

void GatewayServer::WatchReadiness() {
  readiness_ = std::make_unique<OwnerLoop>(OwnerLoop::Options{
      .name = "readiness", .mailbox_limit = 1, .idle = [this, ready = false]() mutable {
        const absl::Status health = handler_->Health();
        grpc_->SetReady(health.ok());
        if (std::exchange(ready, health.ok()) != health.ok()) LogReadiness(health);
        return kReadinessInterval;
      }});
  readiness_->Start();
}

void GatewayServer::LogReadiness(const absl::Status& health) const {
  if (!health.ok()) return LogInfo("not_ready", {{"why", health}});
  LogInfo("ready", {{"model", options_.intake.model_name},
                    {"pair", options_.intake.pair},
                    {"scheduler", options_.scheduler}});
}

void GatewayServer::Drain() {
  LogInfo("drain_started",
          {{"requests", static_cast<int64_t>(metrics_.requests_in_flight.Value())}});
  handler_->BeginDrain();
  grpc_->SetReady(false);
  http_->Drain();
  const absl::Time deadline = clock_->Now() + options_.drain;
  Mutex mutex;
  CondVar never;
  MutexLock lock(&mutex);
  while (clock_->Now() < deadline &&
         (http_->active_calls() > 0 || metrics_.requests_in_flight.Value() > 0)) {
    never.WaitFor(&mutex, kDrainPoll);
  }
  LogInfo("drain_ended", {{"requests", static_cast<int64_t>(metrics_.requests_in_flight.Value())}});
}

GatewayServer::~GatewayServer() {
  if (readiness_ != nullptr) readiness_->Stop();
  admin_.reset();
  // Calls that still run are cancelled together with their requests; the link must outlive them.
  if (grpc_ != nullptr) grpc_->Drain(absl::ZeroDuration());
  if (http_ != nullptr) http_->Stop();
  if (link_ != nullptr) link_->Stop();
}

}  // namespace tokenrouter
