#include "services/scheduler/request/catch_up.h"

#include <algorithm>

#include "libs/status/check.h"

namespace tokenrouter {

Position KnownAfterReplace(Position known, Position base, std::span<const TokenId> replaced,
                           std::span<const TokenId> replacement) {
  TR_CHECK(known >= 0 && known <= base + static_cast<Position>(replaced.size()))
      << "known " << known << " of " << base << " + " << replaced.size();
  if (known <= base) return known;
  const auto agreeing =
      std::mismatch(replaced.begin(), replaced.end(), replacement.begin(), replacement.end());
  const auto common = static_cast<Position>(agreeing.first - replaced.begin());
  return std::min(known, base + common);
}

}  // namespace tokenrouter
