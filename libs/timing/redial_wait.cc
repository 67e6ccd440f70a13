#include "libs/timing/redial_wait.h"

#include <algorithm>
#include <cmath>

#include "libs/timing/jitter.h"

namespace tokenrouter {
namespace {

constexpr int kMostCounted = 32;  // Far beyond the cap; keeps the power finite.

}  // namespace

absl::Duration RedialWait(std::string_view client, int failures) {
  const double factor = std::pow(kRedialFactor, std::min(failures, kMostCounted));
  const absl::Duration whole = std::min(kFirstRedial * factor, kLongestRedial);
  return whole * (0.5 + 0.5 * Jitter(client, static_cast<uint64_t>(failures)));
}

}  // namespace tokenrouter
