// Clock is the only source of time in this project, so that every timing rule can run under
// simulated time. Now() never goes back. Its origin is arbitrary: only differences are meaningful,
// and times never cross processes. Threads: implementations are thread-safe.
#pragma once

#include "absl/time/time.h"

namespace tokenrouter {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
};

}  // namespace tokenrouter
