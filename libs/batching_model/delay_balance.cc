#include "libs/batching_model/delay_balance.h"

#include <algorithm>
#include <cmath>

#include "libs/status/check.h"

namespace tokenrouter {

double DelayBalanceThreshold(const StartableRows& ready, double arrivals, OwnStepMs own_step) {
  TR_CHECK(ready.rows >= 1);
  const int k = ready.rows, n = std::max(1, static_cast<int>(arrivals + 0.5));
  const int64_t coming = std::llround(n * ready.ids_per_arrival);
  const double spared = ready.mean_step_ms > 0 ? ready.mean_step_ms : own_step(n, coming);
  const double growth = own_step(k + n, ready.ids + coming) - own_step(k, ready.ids);
  return arrivals * spared / (k + arrivals) - growth;
}

std::optional<size_t> WorthAwaiting(const StartableRows& ready, std::span<const AwaitedStep> steps,
                                    OwnStepMs own_step) {
  double arrivals = 0;
  for (size_t i = 0; i < std::min(steps.size(), kMostAwaitedSteps); ++i) {
    arrivals += steps[i].rows;
    if (steps[i].wait_ms < DelayBalanceThreshold(ready, arrivals, own_step)) return i;
  }
  return std::nullopt;
}

}  // namespace tokenrouter
