#include "services/scheduler/workers/running_step.h"

#include "libs/batching_model/delay_balance.h"

namespace tokenrouter {
namespace {

constexpr double kOverdueDeviations = 3;

}  // namespace

absl::Duration Remaining(const RunningStep& step, double spread, absl::Time now) {
  return absl::Milliseconds(MeanResidual(absl::ToDoubleMilliseconds(step.predicted),
                                         absl::ToDoubleMilliseconds(now - step.since), spread));
}

bool EndUnknown(const RunningStep& step, double spread, absl::Time now) {
  if (step.predicted <= absl::ZeroDuration()) return true;
  return now - step.since > step.predicted * (1 + kOverdueDeviations * spread);
}

}  // namespace tokenrouter
