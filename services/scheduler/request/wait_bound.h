// Until when a row that could run may be made to wait for a fuller batch: the request's own bounds
// and the scheduler's cap. They clip every wait, on every kind of device.
// Threads: pure.
#pragma once

#include "absl/time/time.h"
#include "services/scheduler/request/request_machine.h"

namespace tokenrouter {

struct WaitBound {
  absl::Time latest = absl::InfiniteFuture();  // Of its start: max_defer_ms and the cap.
  absl::Time due = absl::InfiniteFuture();     // Of its end: the first token's or a token's target.
};

// Of a row that could run since `since`.
WaitBound BoundOf(const RequestMachine& request, absl::Time since, absl::Duration cap);

// When a step that takes `step` must start. It may have passed already: then at once.
absl::Time ServeBy(const WaitBound& bound, absl::Duration step);

}  // namespace tokenrouter
