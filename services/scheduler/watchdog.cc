#include "services/scheduler/watchdog.h"

#include <algorithm>

namespace tokenrouter {

WorkerHealth JudgeWorker(const WorkerPulse& pulse, const CoreOptions& options, absl::Time now) {
  if (now - pulse.heard_at > options.heartbeat * options.missed_heartbeats) {
    return WorkerHealth::kSilent;
  }
  const absl::Duration limit =
      std::max(options.step_floor, pulse.step_predicted * options.step_factor);
  return pulse.step_elapsed > limit ? WorkerHealth::kWedged : WorkerHealth::kAlive;
}

}  // namespace tokenrouter
