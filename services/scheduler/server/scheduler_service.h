// The gRPC service of the scheduler: streams become PeerStreams, GetState asks the loop.
// Ownership: the server, and with it all streams, must be stopped before this object is destroyed.
// Threads: the service methods run on gRPC threads.
#pragma once

#include <functional>
#include <utility>

#include "libs/concurrency/owner_loop.h"
#include "proto/packages.h"
#include "services/scheduler/server/peer_streams.h"
#include "tokenrouter/internal/v1/scheduler.grpc.pb.h"

namespace tokenrouter {

using GatewayStreams = PeerStreams<wire::GatewayFrame, wire::SchedulerFrame>;
using WorkerStreams = PeerStreams<wire::WorkerFrame, wire::CommandFrame>;

class SchedulerService final : public wire::Scheduler::CallbackService {
 public:
  // `fill_state` runs on the loop.
  SchedulerService(OwnerLoop* loop, GatewayStreams* gateways, WorkerStreams* workers,
                   std::function<void(wire::GetStateReply*)> fill_state)
      : loop_(loop), gateways_(gateways), workers_(workers), fill_state_(std::move(fill_state)) {}

  grpc::ServerBidiReactor<wire::GatewayFrame, wire::SchedulerFrame>* Connect(
      grpc::CallbackServerContext* context) override {
    return gateways_->Accept(context);
  }
  grpc::ServerBidiReactor<wire::WorkerFrame, wire::CommandFrame>* Attach(
      grpc::CallbackServerContext* context) override {
    return workers_->Accept(context);
  }
  grpc::ServerUnaryReactor* GetState(grpc::CallbackServerContext* context,
                                     const wire::GetStateRequest*,
                                     wire::GetStateReply* reply) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const bool posted = loop_->Post([this, reactor, reply] {
      fill_state_(reply);
      reactor->Finish(grpc::Status::OK);
    });
    if (!posted) {
      reactor->Finish(
          ToGrpcStatus(absl::ResourceExhaustedError("the scheduler's mailbox is full")));
    }
    return reactor;
  }

 private:
  OwnerLoop* const loop_;
  GatewayStreams* const gateways_;
  WorkerStreams* const workers_;
  const std::function<void(wire::GetStateReply*)> fill_state_;
};

}  // namespace tokenrouter
