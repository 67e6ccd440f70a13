// How far a writer may run ahead of its client. Pure.
// A side is told a committed length up to which it may write. It is raised in steps of half a
// window so that a credit is not a message per token, and always before a writer that the client
// keeps up with would park.
#pragma once

#include "libs/tokens/token_types.h"

namespace tokenrouter {

// True when the acknowledgement at `acked` is worth a new credit for a side that was told `told`.
inline bool RaisesCredit(Position told, Position acked, Position window) {
  return acked + window - told >= (window + 1) / 2;
}

// True when a side that takes the decode grant at `committed` should be told a newer credit: what
// it has left is less than half a window and there is more to give.
inline bool RaisesCreditWithGrant(Position told, Position committed, Position acked,
                                  Position window) {
  return told - committed < (window + 1) / 2 && told < acked + window;
}

// With stop strings no pen goes to the large side while the client is more than half a window
// behind: the stop may already lie in what it has not looked at.
inline bool HoldsHandoff(bool string_stops, Position committed, Position acked, Position window) {
  return string_stops && committed - acked > window / 2;
}

}  // namespace tokenrouter
