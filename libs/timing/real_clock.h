// The machine's monotonic clock.
#pragma once

#include "libs/timing/clock.h"

namespace tokenrouter {

class RealClock : public Clock {
 public:
  absl::Time Now() const override;
  // A shared instance that lives as long as the process.
  static const RealClock& Get();
};

}  // namespace tokenrouter
