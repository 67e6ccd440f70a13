// Whether an attached worker is alive. Pure.
// Any frame is a sign of life; a heartbeat also says how long the running step has taken, so that a
// slow prefill is told apart from a wedged engine, and when the loop that runs the steps last went
// round: heartbeats come from another thread.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "services/scheduler/options/core_options.h"

namespace tokenrouter {

struct WorkerPulse {
  absl::Time heard_at;
  absl::Duration step_elapsed = absl::ZeroDuration();    // Zero: no step runs.
  absl::Duration step_predicted = absl::ZeroDuration();  // Zero: no step has been measured yet.
  absl::Duration loop_elapsed = absl::ZeroDuration();    // Zero: the loop has nothing to do.
};

enum class WorkerHealth : uint8_t { kAlive, kSilent, kWedged, kLoopStuck };

WorkerHealth JudgeWorker(const WorkerPulse& pulse, const CoreOptions& options, absl::Time now);
// For people, as the rest of a sentence about the worker. REQUIRES: health is not kAlive.
std::string Describe(WorkerHealth health, const WorkerPulse& pulse, absl::Time now);

}  // namespace tokenrouter
