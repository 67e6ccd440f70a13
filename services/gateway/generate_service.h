// GenerateService is the gRPC face tokenrouter.v1.Generation: the same intake and limits as HTTP,
// text as a stream. Ownership: what it is given must outlive it. Threads: gRPC's for reactions;
// text is made on `post`'s threads. Memory: one reply is in flight per call, and tokens are
// acknowledged when it has been written, so a client that does not read stops its request by
// credit. Errors: the status of the call, mapped as libs/rpc does; a failure after the first reply
// too.
#pragma once

#include <functional>
#include <memory>

#include "proto/gateway.grpc.pb.h"
#include "services/gateway/generation.h"
#include "services/gateway/request_intake.h"

namespace tokenrouter {

class GenerateService final : public v1::Generation::CallbackService {
 public:
  struct Environment {
    GenerationEnvironment generation;
    const RequestIntake* intake = nullptr;
    std::function<absl::Status()> admit;              // Whether one more may start.
    std::function<void(std::function<void()>)> post;  // Runs text work; may drop it when stopping.
  };

  explicit GenerateService(Environment environment) : environment_(std::move(environment)) {}

  grpc::ServerWriteReactor<v1::GenerateReply>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* request) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsReply* reply) override;

 private:
  const Environment environment_;
};

}  // namespace tokenrouter
