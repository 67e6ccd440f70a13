#include "services/scheduler/core/initial_grant.h"

#include "libs/routing/algorithms/algorithm_registry.h"
#include "libs/routing/wire_types.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {

absl::StatusOr<RequestGrant> InitialGrant(const api::RoutingParameters& routing) {
  TR_ASSIGN_OR_RETURN(const auto algorithm,
                      CreateAlgorithm(routing.algorithm(), ParametersFromWire(routing)));
  const Opening opening = algorithm->Open();
  RequestGrant grant;
  grant.role = opening.role;
  *grant.terms.mutable_window() = ToWire(opening.window);
  return grant;
}

}  // namespace tokenrouter
