// Until when a row that is ready may wait for a fuller batch: the request's own bounds and the
// scheduler's cap. They clip every wait, on every kind of device.
// Threads: pure.
#pragma once

#include "absl/time/time.h"
#include "services/scheduler/request/request_machine.h"

namespace tokenrouter {

struct WaitBound {
  absl::Time latest = absl::InfiniteFuture();  // The latest start: max_defer_ms and the cap.
  // The latest end: the target of the first or the next token.
  absl::Time due = absl::InfiniteFuture();
};

// The bound of a row that has been ready since `since`.
WaitBound BoundOf(const RequestMachine& request, absl::Time since, absl::Duration cap);

// When a step that takes `step` must start. A time in the past means at once.
absl::Time ServeBy(const WaitBound& bound, absl::Duration step);

}  // namespace tokenrouter
