// Which ids of a history a side does not know. Pure.
// Units: positions are canonical. `known` is the length of the prefix of the current history
// (committed ids and tail) that a side knows.
#pragma once

#include <span>

#include "libs/tokens/token_types.h"

namespace tokenrouter {

// What remains of `known` after everything from `base` on was replaced by `replacement`; `replaced`
// is what was there before. REQUIRES: 0 <= known <= base + replaced.size().
Position KnownAfterReplace(Position known, Position base, std::span<const TokenId> replaced,
                           std::span<const TokenId> replacement);

}  // namespace tokenrouter
