// The commands that bring a side of a request up to date: they are filled from the request and
// noted in its side. Nothing is sent here, and no worker is chosen.
// Threads: on the scheduler's loop.
#pragma once

#include <optional>

#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "services/scheduler/options/core_options.h"
#include "services/scheduler/request/request_machine.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

// Opens the side on `worker`: the epoch grows and the whole history is sent.
void FillOpen(RequestMachine* request, Role role, StreamId worker, int numerics_class,
              wire::Open* open);

// Sends an open side the ids that it does not know, and the decode grant if the side holds it.
void FillExtend(RequestMachine* request, Role role, wire::Extend* extend);

// The new credit to send to an open side, if it is due. `with_grant`: the side takes the decode
// grant now.
std::optional<Position> RaiseCredit(RequestMachine* request, Role role, bool with_grant);

// The decode grant goes to the large side, but not before the client has caught up (credit.h).
bool HoldsHandoff(const RequestMachine& request);

// Uncomputed tokens: ids that the side must compute before it can answer, at least 1. They are
// the ids it was not sent or has not computed, and the token that it wrote last. What a prefix
// cache or background prefill saves is not known here.
Position Uncomputed(const RequestMachine& request, Role role);

// Whether the side has computed the prompt, as far as its rows show.
bool HasReadPrompt(const RequestMachine& request, Role role);

}  // namespace tokenrouter
