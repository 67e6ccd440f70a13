// Who writes first, asked of the algorithm itself.
#pragma once

#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

// By the registry of libs/routing. Thread-safe.
absl::StatusOr<RequestMachine::DecodeGrant> InitialGrant(const api::RoutingParameters& routing);

}  // namespace tokenrouter
