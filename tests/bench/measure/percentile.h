// Percentiles of measured values. Threads: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tokenrouter {

// REQUIRES: values not empty, 0 <= share <= 1. The nearest rank.
inline double Percentile(std::vector<double> values, double share) {
  const auto nth =
      values.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

// Of an even number of values the mean of the two in the middle. REQUIRES: values not empty.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace tokenrouter
