// Step times that grow linearly, for the tests of this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "libs/batching_model/simulator.h"

namespace tokenrouter {

inline StepCost Affine(double fixed, double row, double id = 0) {
  return [=](int rows, int64_t ids) { return fixed + row * rows + id * static_cast<double>(ids); };
}

// By batch size, for formulas that do not depend on ids.
inline std::vector<double> AffineStepTimes(double fixed, double row, int rows) {
  std::vector<double> times(static_cast<size_t>(rows) + 1);
  for (int b = 0; b <= rows; ++b) times[b] = fixed + row * b;
  return times;
}

}  // namespace tokenrouter
