// How far a writer may run ahead of its client. Pure.
// A side is sent a committed length up to which it may write, its credit. The credit is raised in
// steps of half a window, so that it is not a message per token, and always before a writer whose
// client keeps up would become credit-blocked.
#pragma once

#include "libs/tokens/token_types.h"

namespace tokenrouter {

// True when the acknowledgement at `acked` is worth a new credit for a side whose last credit is
// `told`.
inline bool RaisesCredit(Position told, Position acked, Position window) {
  return acked + window - told >= (window + 1) / 2;
}

// True when a side that takes the decode grant at `committed` should be sent a newer credit: less
// than half a window of its credit is left, and the acknowledgement allows more.
inline bool RaisesCreditWithGrant(Position told, Position committed, Position acked,
                                  Position window) {
  return told - committed < (window + 1) / 2 && told < acked + window;
}

// With stop strings no decode grant goes to the large side while the client is more than half a
// window behind: the stop may be in text that the gateway has not searched yet.
inline bool HoldsHandoff(bool string_stops, Position committed, Position acked, Position window) {
  return string_stops && committed - acked > window / 2;
}

}  // namespace tokenrouter
