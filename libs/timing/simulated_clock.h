// A clock that advances only explicitly, for tests and the simulator; single-threaded.
#pragma once

#include "libs/timing/clock.h"

namespace tokenrouter {

class SimulatedClock : public Clock {
 public:
  absl::Time Now() const override { return now_; }
  // REQUIRES: step >= 0.
  void Advance(absl::Duration step) { now_ += step; }
  // REQUIRES: time >= Now().
  void SetTo(absl::Time time) { now_ = time; }

 private:
  absl::Time now_ = absl::UnixEpoch();
};

}  // namespace tokenrouter
