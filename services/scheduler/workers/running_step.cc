#include "services/scheduler/workers/running_step.h"

#include "libs/batching_model/step_end.h"

namespace tokenrouter {

absl::Duration Remaining(const RunningStep& step, double spread, absl::Time now) {
  return absl::Milliseconds(MeanResidual(absl::ToDoubleMilliseconds(step.predicted),
                                         absl::ToDoubleMilliseconds(now - step.since), spread));
}

absl::Time LatestEnd(const RunningStep& step, double spread) {
  return step.since +
         absl::Milliseconds(LongestRun(absl::ToDoubleMilliseconds(step.predicted), spread));
}

}  // namespace tokenrouter
