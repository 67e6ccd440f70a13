// Whether an attached worker is alive. Pure.
// Any frame is a sign of life. A heartbeat also says how long the running step has taken, which
// distinguishes a slow prefill from a wedged engine.
#pragma once

#include "absl/time/time.h"
#include "services/scheduler/options/core_options.h"

namespace tokenrouter {

struct WorkerPulse {
  absl::Time heard_at;
  absl::Duration step_elapsed = absl::ZeroDuration();    // Zero: no step runs.
  absl::Duration step_predicted = absl::ZeroDuration();  // Zero: no step was measured yet.
};

enum class WorkerHealth : uint8_t { kAlive, kSilent, kWedged };

WorkerHealth JudgeWorker(const WorkerPulse& pulse, const CoreOptions& options, absl::Time now);

}  // namespace tokenrouter
