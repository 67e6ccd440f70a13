// A decode grant as gateways keep it for a resubmit: what is true of it as of the last committed
// id. A verification is no part of it: it belongs to tentative ids, which do not survive a restart.
// Pure. Errors: INVALID_ARGUMENT naming the field and what is allowed.
#pragma once

#include "absl/status/statusor.h"
#include "proto/packages.h"
#include "services/scheduler/request/request_grant.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

void FillGrantState(const RequestGrant& grant, wire::GrantState* state);
absl::StatusOr<RequestGrant> ReadGrantState(const wire::GrantState& state);

}  // namespace tokenrouter
