// The slope of a straight line through points (least squares) with its error. Threads: none.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "libs/status/check.h"
#include "tools/simulate/student_quantile.h"

namespace tokenrouter {

struct Growth {
  double slope = 0;
  double half_width95 = INFINITY;  // Of its 95 % interval by Student's t; three points or more.
};

// Errors of the points count as independent, so pass means over times longer than any fluctuation.
// 0 for fewer than two points. REQUIRES: as many y as x, and no x twice.
inline Growth GrowthOf(std::span<const double> x, std::span<const double> y) {
  TR_CHECK(x.size() == y.size());
  const auto count = static_cast<double>(x.size());
  Growth growth;
  if (x.size() < 2) return growth;
  double mean_x = 0, mean_y = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / count;
    mean_y += y[i] / count;
  }
  double xx = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  growth.slope = xy / xx;
  if (x.size() < 3) return growth;
  double squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double off = y[i] - mean_y - growth.slope * (x[i] - mean_x);
    squares += off * off;
  }
  const int freedom = static_cast<int>(x.size()) - 2;
  growth.half_width95 = std::sqrt(squares / freedom / xx) * StudentQuantile975(freedom);
  return growth;
}

}  // namespace tokenrouter
