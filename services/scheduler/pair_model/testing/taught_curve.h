// A side whose steps were seen to take base + row x rows + id x new ids milliseconds, for tests.
#pragma once

#include "absl/time/time.h"
#include "services/scheduler/pair_model/pair_observations.h"

namespace tokenrouter {

inline void Teach(PairObservations* seen, Role role, double base, double row, double id) {
  for (int rows = 1; rows <= 16; rows *= 2) {
    for (const int ids : {1, 10}) {
      seen->ObserveStep(role, rows, rows * ids,
                        absl::Milliseconds(base + row * rows + id * rows * ids));
    }
  }
}

}  // namespace tokenrouter
