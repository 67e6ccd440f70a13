#include "services/gateway/grpc/generate_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "services/gateway/errors/api_error.h"
#include "services/gateway/errors/exception_guard.h"
#include "services/gateway/grpc/generate_reactor.h"
#include "services/gateway/grpc/generate_request_wire.h"

namespace tokenrouter {
namespace {

constexpr char kEndpoint[] = "grpc/Generate";

absl::StatusOr<std::unique_ptr<Generation>> StartGeneration(
    const GenerateService::Environment& environment, const GenerationRequest& request,
    std::function<void()> wake) {
  TR_RETURN_IF_ERROR(environment.admit());
  TR_RETURN_IF_ERROR(CheckRequestId(request.request_id));
  const PortHealth health = environment.generation.port->Health();
  TR_ASSIGN_OR_RETURN(TokenRequest tokens, environment.intake->Prepare(request, health.pair));
  return Generation::Start(std::move(tokens), environment.generation, std::move(wake));
}

// One call among those that wait, until its work begins or is dropped.
class Place {
 public:
  explicit Place(std::shared_ptr<std::atomic<int>> waiting) : waiting_(std::move(waiting)) {
    ++*waiting_;
  }
  ~Place() { Leave(); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  void Leave() {
    if (const auto waiting = std::exchange(waiting_, nullptr)) --*waiting;
  }

 private:
  std::shared_ptr<std::atomic<int>> waiting_;
};

int HttpCodeOf(const absl::Status& status) {
  return status.ok() ? 200 : ToApiError(status).http_status;
}

}  // namespace

absl::Status GenerateService::AdmitWaiting() const {
  if (const int waiting = *waiting_; waiting >= environment_.max_waiting) {
    absl::Status status = absl::ResourceExhaustedError(absl::StrCat(
        waiting, " calls wait to begin; allowed: ", environment_.max_waiting, "; try again"));
    return WithRetryAfter(WithCode(std::move(status), "too_many_requests"), absl::Seconds(1));
  }
  return environment_.admit();
}

void GenerateService::Begin(const GenerationRequest& request,
                            const std::shared_ptr<GenerateReactor>& reactor) const {
  auto generation =
      StartGeneration(environment_, request, [weak = std::weak_ptr<GenerateReactor>(reactor)] {
        if (const auto self = weak.lock()) self->SchedulePump();
      });
  if (!generation.ok()) return reactor->Fail(generation.status());
  reactor->Adopt(*std::move(generation));
}

grpc::ServerWriteReactor<api::GenerateReply>* GenerateService::Generate(
    grpc::CallbackServerContext* /*context*/, const api::GenerateRequest* request) {
  GatewayMetrics* const metrics = environment_.generation.metrics;
  const auto reactor = std::make_shared<GenerateReactor>(
      environment_.post,
      [metrics](const absl::Status& status) {
        metrics->CountRequest(kEndpoint, HttpCodeOf(status));
      },
      request->return_routing());
  reactor->Begin();
  if (absl::Status admitted = AdmitWaiting(); !admitted.ok()) {
    reactor->Fail(admitted);
    return reactor.get();
  }
  absl::StatusOr<GenerationRequest> parsed = FromWire(*request);
  if (!parsed.ok()) {
    reactor->Fail(parsed.status());
    return reactor.get();
  }
  if (parsed->request_id.empty()) parsed->request_id = DrawRequestId();
  // Tokenizing takes its time: not on gRPC's thread.
  environment_.post(
      [this, reactor, parsed = *std::move(parsed), place = std::make_shared<Place>(waiting_)] {
        place->Leave();
        const absl::Status status = CatchExceptions([&] { Begin(parsed, reactor); });
        if (!status.ok()) reactor->Fail(status);
      });
  return reactor.get();
}

grpc::ServerUnaryReactor* GenerateService::ListModels(grpc::CallbackServerContext* context,
                                                      const api::ListModelsRequest* /*request*/,
                                                      api::ListModelsReply* reply) {
  const wire::PairStatus pair = environment_.generation.port->Health().pair;
  const IntakeOptions& options = environment_.intake->options();
  std::vector<std::string> names = options.aliases;
  names.insert(names.begin(), options.model_name);
  for (const std::string& name : names) {
    api::ModelCard* card = reply->add_models();
    card->set_id(name);
    card->set_context_limit(pair.context_limit());
    card->set_small_model(pair.small_model());
    card->set_large_model(pair.large_model());
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace tokenrouter
