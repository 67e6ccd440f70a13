#include "services/scheduler/core/opening_rule.h"

#include "libs/routing/algorithms/algorithm_registry.h"
#include "libs/routing/wire_types.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {

absl::StatusOr<RequestMachine::Pen> OpeningOf(const v1::RoutingParameters& routing) {
  TR_ASSIGN_OR_RETURN(const auto algorithm,
                      CreateAlgorithm(routing.algorithm(), ParametersFromWire(routing)));
  const Opening opening = algorithm->Open();
  RequestMachine::Pen pen;
  pen.role = opening.role;
  *pen.turn.mutable_window() = ToWire(opening.window);
  return pen;
}

}  // namespace tokenrouter
