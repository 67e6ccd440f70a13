#include "services/scheduler/workers/watchdog.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tokenrouter {

WorkerHealth JudgeWorker(const WorkerPulse& pulse, const CoreOptions& options, absl::Time now) {
  if (now - pulse.heard_at > options.heartbeat * options.missed_heartbeats) {
    return WorkerHealth::kSilent;
  }
  if (pulse.step_elapsed == absl::ZeroDuration()) {
    return pulse.loop_elapsed > options.loop_stall ? WorkerHealth::kLoopStuck
                                                   : WorkerHealth::kAlive;
  }
  const bool predicted = pulse.step_predicted > absl::ZeroDuration();
  const absl::Duration limit =
      predicted ? std::max(options.step_floor, pulse.step_predicted * options.step_factor)
                : options.unpredicted_step;
  return pulse.step_elapsed > limit ? WorkerHealth::kWedged : WorkerHealth::kAlive;
}

std::string Describe(WorkerHealth health, const WorkerPulse& pulse, absl::Time now) {
  switch (health) {
    case WorkerHealth::kSilent:
      return absl::StrCat(" was silent for ", absl::FormatDuration(now - pulse.heard_at));
    case WorkerHealth::kLoopStuck:
      return absl::StrCat(" has a step loop that has not gone round for ",
                          absl::FormatDuration(pulse.loop_elapsed));
    default:
      return absl::StrCat(" has a step wedged for ", absl::FormatDuration(pulse.step_elapsed));
  }
}

}  // namespace tokenrouter
