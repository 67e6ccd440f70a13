#include "libs/timing/real_clock.h"

#include <chrono>

namespace tokenrouter {

absl::Time RealClock::Now() const {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

const RealClock& RealClock::Get() {
  static const RealClock clock;
  return clock;
}

}  // namespace tokenrouter
