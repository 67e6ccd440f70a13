// RequestFinisher ends requests: it closes both sides, notifies the gateway and forgets the
// request. Every request goes through exactly one of its three functions exactly once.
// Threads: lives on the scheduler's loop. The machine is gone when a function returns.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/packages.h"
#include "services/scheduler/placement/admission.h"
#include "services/scheduler/state/core_state.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

class RequestFinisher {
 public:
  explicit RequestFinisher(CoreState* state) : state_(state) {}

  // Ends at finish.position (at most the committed length). `last` is the chunk that carries the
  // end; null: a chunk of its own. Ids of `last` at or beyond the position are cut.
  void Finish(RequestMachine* request, wire::Finish finish, wire::TokenChunk* last = nullptr);
  // The request could not go on.
  void Reject(RequestMachine* request, RejectReason reason, absl::StatusCode code,
              const std::string& message);
  // Its gateway is gone, so no message is sent.
  void Abandon(RequestMachine* request);

  // Called for each request that ends, while it still exists.
  std::function<void(RequestMachine*)> on_end = [](RequestMachine*) {};

 private:
  void CloseSides(RequestMachine* request);
  void CountOverrun(const RequestMachine& request, Position end);

  CoreState* const state_;
};

// Closes one side of a request that goes on or ends. The worker confirms later.
void CloseSide(CoreState* state, RequestMachine* request, Role role, ReopenCause cause);

// Rejects a submit that never became a request, or a request that stops being one.
void FillRejection(CoreState* state, StreamId gateway, uint64_t handle,
                   const std::string& request_id, const Refusal& refusal);

}  // namespace tokenrouter
