// Whether a worker's row may be committed to its request: it must come from the worker that the
// side is open on, under the decode grant, and continue the committed history. Pure.
#pragma once

#include <optional>

#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "services/scheduler/options/core_options.h"
#include "services/scheduler/options/reasons.h"
#include "services/scheduler/request/request_machine.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

// Why a row of `worker` is not accepted; no value when it is.
std::optional<DropReason> RefusesRow(const RequestMachine& request, Role role, StreamId worker,
                                     const wire::RowReport& row);

}  // namespace tokenrouter
