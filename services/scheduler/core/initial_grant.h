// The first decode grant of a request, as its algorithm decides.
#pragma once

#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

// Uses the registry of libs/routing. Thread-safe. INVALID_ARGUMENT as InitialGrantRule says.
absl::StatusOr<RequestGrant> InitialGrant(const api::RoutingParameters& routing);

}  // namespace tokenrouter
