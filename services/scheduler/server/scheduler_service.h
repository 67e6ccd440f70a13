// The gRPC face of the scheduler: streams become PeerStreams, GetState asks the loop.
// Ownership: the server, and with it all streams, must be stopped before this object goes.
// Threads: the service methods run on gRPC threads.
#pragma once

#include <functional>
#include <utility>

#include "libs/concurrency/owner_loop.h"
#include "proto/scheduler.grpc.pb.h"
#include "services/scheduler/server/peer_streams.h"

namespace tokenrouter {

using GatewayStreams = PeerStreams<v1::GatewayFrame, v1::SchedulerFrame>;
using WorkerStreams = PeerStreams<v1::WorkerFrame, v1::CommandFrame>;

class SchedulerService final : public v1::Scheduler::CallbackService {
 public:
  // `fill_state` runs on the loop.
  SchedulerService(OwnerLoop* loop, GatewayStreams* gateways, WorkerStreams* workers,
                   std::function<void(v1::GetStateReply*)> fill_state)
      : loop_(loop), gateways_(gateways), workers_(workers), fill_state_(std::move(fill_state)) {}

  grpc::ServerBidiReactor<v1::GatewayFrame, v1::SchedulerFrame>* Connect(
      grpc::CallbackServerContext*) override {
    return gateways_->Accept();
  }
  grpc::ServerBidiReactor<v1::WorkerFrame, v1::CommandFrame>* Attach(
      grpc::CallbackServerContext*) override {
    return workers_->Accept();
  }
  grpc::ServerUnaryReactor* GetState(grpc::CallbackServerContext* context,
                                     const v1::GetStateRequest*,
                                     v1::GetStateReply* reply) override {
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
  const std::function<void(v1::GetStateReply*)> fill_state_;
};

}  // namespace tokenrouter
