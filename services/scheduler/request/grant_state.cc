#include "services/scheduler/request/grant_state.h"

#include "absl/strings/str_cat.h"
#include "libs/routing/wire_types.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {

void FillGrantState(const RequestGrant& grant, wire::GrantState* state) {
  state->set_role(ToWire(grant.role));
  *state->mutable_window() = grant.terms.window();
  state->set_large_alone(grant.large_alone);
  if (!grant.own) return;
  state->set_own_role(ToWire(grant.own->role));
  *state->mutable_own_window() = grant.own->terms.window();
}

absl::StatusOr<RequestGrant> ReadGrantState(const wire::GrantState& state) {
  RequestGrant grant;
  TR_ASSIGN_OR_RETURN(grant.role, FromWire(state.role()));
  TR_RETURN_IF_ERROR(FromWire(state.window()).status());
  *grant.terms.mutable_window() = state.window();
  grant.large_alone = state.large_alone();
  if (grant.large_alone && grant.role != Role::kLarge) {
    return absl::InvalidArgumentError("large_alone with the small model as the writer");
  }
  if (!state.has_own_window()) return grant;
  if (!grant.large_alone) {
    return absl::InvalidArgumentError("own_window is set without large_alone");
  }
  AlgorithmGrant own;
  TR_ASSIGN_OR_RETURN(own.role, FromWire(state.own_role()));
  TR_RETURN_IF_ERROR(FromWire(state.own_window()).status());
  *own.terms.mutable_window() = state.own_window();
  grant.own = std::move(own);
  return grant;
}

}  // namespace tokenrouter
