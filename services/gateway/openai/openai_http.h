// The HTTP routes of the gateway: POST /v1/chat/completions, /v1/completions, /tokenize,
// /detokenize; GET /v1/models, /health, /version. Every error is a nested OpenAI error object.
// Ownership: its environment must outlive it. Threads: Start and Refuse are thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "services/gateway/generation/generation.h"
#include "services/gateway/generation/request_intake.h"
#include "services/gateway/http/http_call.h"
#include "services/gateway/openai/openai_json.h"

namespace tokenrouter {

inline constexpr char kGatewayVersion[] = "0.1.0";

class OpenAiHttp final : public HttpHandler {
 public:
  struct Options {
    int max_requests =
        1024;  // Generations at once, HTTP and gRPC; every choice is one; one more is a 429.
  };

  OpenAiHttp(Options options, const RequestIntake* intake, GenerationEnvironment environment);

  std::unique_ptr<HttpCall> Start(HttpRequest request, std::function<void()> wake) override;
  HttpStep Refuse(const absl::Status& status) override;

  // OK when requests can be served; otherwise UNAVAILABLE with the reason.
  absl::Status Health() const;
  // Checks whether that many more generations may start: RESOURCE_EXHAUSTED or UNAVAILABLE when
  // they may not now, INVALID_ARGUMENT when they never may.
  absl::Status Admit(int generations = 1) const;
  // After it Health reports the shutdown, and new generations are refused.
  void BeginDrain() { draining_ = true; }

 private:
  class Metered;

  absl::StatusOr<std::unique_ptr<HttpCall>> Route(const HttpRequest& request,
                                                  const std::string& request_id,
                                                  const std::function<void()>& wake);
  absl::StatusOr<std::unique_ptr<HttpCall>> Complete(OpenAiEndpoint endpoint,
                                                     const HttpRequest& request,
                                                     const std::string& request_id,
                                                     const std::function<void()>& wake);
  absl::StatusOr<HttpStep> Tokenize(const HttpRequest& request) const;
  absl::StatusOr<HttpStep> Detokenize(const HttpRequest& request) const;
  HttpStep Models() const;

  const Options options_;
  const RequestIntake* const intake_;
  const GenerationEnvironment environment_;
  std::atomic<bool> draining_{false};
};

}  // namespace tokenrouter
