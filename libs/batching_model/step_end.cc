#include "libs/batching_model/step_end.h"

#include <algorithm>
#include <cmath>

namespace tokenrouter {
namespace {

// A step is overdue this many spreads after its predicted end. The spread is never taken as less
// than kLeastSpread, since the report and the rows need time to travel too.
constexpr double kOverdueSpreads = 3.0;
constexpr double kLeastSpread = 0.02;

}  // namespace

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

double LongestRun(double predicted, double cv) {
  return predicted * (1 + kOverdueSpreads * std::max(cv, kLeastSpread));
}

}  // namespace tokenrouter
