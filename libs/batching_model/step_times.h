// Step times of one side by batch size: times[b] is the predicted duration in milliseconds of a
// step of b rows, and times[0] is unused. Where the cost also depends on new ids, the caller folds
// their mean per row in (c_row + c_tok / r).
#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace tokenrouter {

using StepTimes = std::span<const double>;

// t(b) = fixed + per_row * b for b = 0..rows.
inline std::vector<double> AffineStepTimes(double fixed_ms, double per_row_ms, int rows) {
  std::vector<double> times(static_cast<size_t>(rows) + 1);
  for (int b = 0; b <= rows; ++b) times[b] = fixed_ms + per_row_ms * b;
  return times;
}

}  // namespace tokenrouter
