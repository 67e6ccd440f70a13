#include "services/scheduler/workers/watchdog.h"

#include <algorithm>

namespace tokenrouter {

WorkerHealth JudgeWorker(const WorkerPulse& pulse, const CoreOptions& options, absl::Time now) {
  if (now - pulse.heard_at > options.heartbeat * options.missed_heartbeats) {
    return WorkerHealth::kSilent;
  }
  const bool predicted = pulse.step_predicted > absl::ZeroDuration();
  const absl::Duration limit =
      predicted ? std::max(options.step_floor, pulse.step_predicted * options.step_factor)
                : options.unpredicted_step;
  return pulse.step_elapsed > limit ? WorkerHealth::kWedged : WorkerHealth::kAlive;
}

}  // namespace tokenrouter
