#include "libs/batching_model/binomial.h"

#include <algorithm>

namespace tokenrouter {
namespace {

constexpr double kTail = 1e-15;  // Mass, relative to the mode, at which the table is cut.

}  // namespace

std::vector<double> BinomialMass(int n, double p) {
  std::vector<double> mass(static_cast<size_t>(n) + 1, 0.0);
  if (p >= 1.0) {
    mass[n] = 1.0;
    return mass;
  }
  const int mode = std::min(n, static_cast<int>((n + 1) * p));
  mass[mode] = 1.0;
  double sum = 1.0;
  for (int j = mode; j < n && mass[j] > kTail; ++j) {
    mass[j + 1] = mass[j] * (n - j) * p / ((j + 1) * (1 - p));
    sum += mass[j + 1];
  }
  for (int j = mode; j > 0 && mass[j] > kTail; --j) {
    mass[j - 1] = mass[j] * j * (1 - p) / ((n - j + 1) * p);
    sum += mass[j - 1];
  }
  for (double& value : mass) value /= sum;
  return mass;
}

}  // namespace tokenrouter
