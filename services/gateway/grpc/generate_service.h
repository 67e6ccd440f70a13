// GenerateService implements the gRPC service tokenrouter.generation.v1.Generation: it has the same
// intake and limits as HTTP and streams text. Ownership: its environment must outlive it. Threads:
// gRPC's for reactions; text is made on `post`'s threads. Memory: one reply is in flight per call,
// and tokens are acknowledged when it has been written, so a client that does not read stops its
// request by credit; requests that wait for text work are bounded in number by max_waiting and in
// size by the server. Errors: the status of the call, mapped as libs/rpc does, also for a failure
// after the first reply; RESOURCE_EXHAUSTED or the status of admit() before a request is looked at.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "proto/packages.h"
#include "services/gateway/generation/generation.h"
#include "services/gateway/generation/request_intake.h"
#include "tokenrouter/generation/v1/generation.grpc.pb.h"

namespace tokenrouter {

class GenerateReactor;

class GenerateService final : public api::Generation::CallbackService {
 public:
  struct Environment {
    GenerationEnvironment generation;
    const RequestIntake* intake = nullptr;
    std::function<absl::Status()> admit;              // Whether one more may start.
    std::function<void(std::function<void()>)> post;  // Runs text work; may drop it when stopping.
    int max_waiting = 1024;  // Calls whose text work has not begun; one more is refused.
  };

  explicit GenerateService(Environment environment) : environment_(std::move(environment)) {}

  grpc::ServerWriteReactor<api::GenerateReply>* Generate(
      grpc::CallbackServerContext* context, const api::GenerateRequest* request) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const api::ListModelsRequest* request,
                                       api::ListModelsReply* reply) override;

 private:
  // Whether one more call may be converted and wait.
  absl::Status AdmitWaiting() const;
  // Makes text ids and starts the generation, or fails the call.
  void Begin(const GenerationRequest& request,
             const std::shared_ptr<GenerateReactor>& reactor) const;

  const Environment environment_;
  // Shared with the calls that wait, since dropped work must leave the count of waiting calls too.
  const std::shared_ptr<std::atomic<int>> waiting_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace tokenrouter
