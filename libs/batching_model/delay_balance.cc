#include "libs/batching_model/delay_balance.h"

#include <algorithm>
#include <cmath>

#include "libs/status/check.h"

namespace tokenrouter {

double DelayBalanceThreshold(const BalanceTimes& times, int ready, double arrivals, double beta) {
  TR_CHECK(ready >= 1);
  const double saved = beta * arrivals * (times.ready + times.arrivals - times.together);
  const double lost = ready * (times.together - times.ready);
  return (saved - lost) / (beta * arrivals + ready);
}

double DelayBalanceThreshold(StepTimes own, int ready, double arrivals, double beta) {
  const int last = static_cast<int>(own.size()) - 1;
  const int k = std::clamp(ready, 1, last);
  const int n = std::clamp(static_cast<int>(arrivals + 0.5), 1, last);
  return DelayBalanceThreshold({own[k], own[n], own[std::min(k + n, last)]}, ready, arrivals, beta);
}

double MeanResidual(double predicted, double elapsed, double cv) {
  if (cv <= 0.0) return std::max(0.0, predicted - elapsed);
  const double sigma = cv * predicted;
  const double z = (elapsed - predicted) / sigma;
  if (z < -6.0) return predicted - elapsed;
  if (z > 5.0) return sigma / z;
  constexpr double kInverseRootTwoPi = 0.3989422804014327;
  const double density = kInverseRootTwoPi * std::exp(-z * z / 2);
  const double survival = 0.5 * std::erfc(z / std::sqrt(2.0));
  return predicted - elapsed + sigma * density / survival;
}

}  // namespace tokenrouter
