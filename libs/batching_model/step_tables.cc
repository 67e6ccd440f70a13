#include "libs/batching_model/step_tables.h"

#include <cmath>

namespace tokenrouter {
namespace {

// The cost takes whole ids: between two of them it is interpolated.
double CostAt(const StepCost& cost, int rows, double ids) {
  const double low = std::floor(ids);
  const auto whole = static_cast<int64_t>(low);
  const double below = cost(rows, whole);
  return ids > low ? below + (ids - low) * (cost(rows, whole + 1) - below) : below;
}

std::vector<double> Tabulate(const StepCost& cost, int rows, double ids_per_row) {
  std::vector<double> times(static_cast<size_t>(rows) + 1, 0.0);
  for (int b = 1; b <= rows; ++b) times[b] = CostAt(cost, b, b * ids_per_row);
  return times;
}

}  // namespace

double MeanIdsPerLargeRow(double r, double q) { return 1.0 + q * (1.0 - r) / r; }

std::vector<double> SmallStepTimes(const StepCost& cost, int rows) {
  return Tabulate(cost, rows, 1.0);
}

std::vector<double> LargeStepTimes(const StepCost& cost, int rows, double r, double q) {
  return Tabulate(cost, rows, MeanIdsPerLargeRow(r, q));
}

}  // namespace tokenrouter
