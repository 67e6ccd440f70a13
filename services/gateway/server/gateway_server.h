// GatewayServer owns the parts of a gateway and starts and stops them in order: text model,
// scheduler link, HTTP, gRPC, admin port. Ownership: owns everything; the clock must outlive it.
// The destructor stops without draining. Threads: Start, Drain and the destructor from one thread.
// Errors: Start: the status of the part that failed (an address that is taken, a tokenizer that
// cannot be read).
#pragma once

#include <prometheus/registry.h>

#include <memory>

#include "absl/status/statusor.h"
#include "libs/rpc/server_runtime.h"
#include "libs/telemetry/admin_server.h"
#include "libs/timing/clock.h"
#include "services/gateway/grpc/generate_service.h"
#include "services/gateway/http/http_server.h"
#include "services/gateway/link/gateway_metrics.h"
#include "services/gateway/link/scheduler_link.h"
#include "services/gateway/openai/openai_http.h"
#include "services/gateway/server/gateway_options.h"

namespace tokenrouter {

class GatewayServer {
 public:
  // The text model is loaded from options.tokenizer.
  static absl::StatusOr<std::unique_ptr<GatewayServer>> Start(const GatewayOptions& options,
                                                              const Clock* clock);
  // With another text model: for tests.
  static absl::StatusOr<std::unique_ptr<GatewayServer>> Start(const GatewayOptions& options,
                                                              std::unique_ptr<TextModel> model,
                                                              const Clock* clock);
  ~GatewayServer();

  int http_port() const { return http_->port(); }
  int grpc_port() const { return grpc_->port(); }
  int admin_port() const { return admin_->port(); }
  GatewayMetrics& metrics() { return metrics_; }

  // Turns readiness off and refuses new requests; returns when the running ones have ended or
  // options.drain has passed, whichever comes first. The destructor then cancels the remaining
  // ones.
  void Drain();

 private:
  GatewayServer(const GatewayOptions& options, std::unique_ptr<TextModel> model,
                const Clock* clock);
  absl::Status StartParts();
  void WatchReadiness();
  void LogReadiness(const absl::Status& health) const;

  const GatewayOptions options_;
  const Clock* const clock_;
  prometheus::Registry registry_;
  GatewayMetrics metrics_;
  const std::unique_ptr<TextModel> model_;
  const RequestIntake intake_;
  std::unique_ptr<SchedulerLink> link_;
  std::unique_ptr<OpenAiHttp> handler_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<GenerateService> service_;
  std::unique_ptr<ServerRuntime> grpc_;
  std::unique_ptr<AdminServer> admin_;
  // Reports Health() to gRPC's health service and the log; it also changes without a call.
  std::unique_ptr<OwnerLoop> readiness_;
};

}  // namespace tokenrouter
