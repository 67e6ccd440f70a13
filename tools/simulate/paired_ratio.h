// The ratio of two rates from pairs measured under the same conditions, with its error. Threads:
// none.
#pragma once

#include <algorithm>
#include <cmath>

#include "libs/status/check.h"
#include "tools/simulate/student_quantile.h"

namespace tokenrouter {

class PairedRatio {
 public:
  // REQUIRES: denominator > 0.
  void Add(double numerator, double denominator) {
    TR_CHECK(denominator > 0);
    numerators_ += numerator;
    denominators_ += denominator;
    const double ratio = numerator / denominator;
    ++count_;
    const double before = ratio - mean_;
    mean_ += before / count_;
    squares_ += before * (ratio - mean_);  // Welford.
  }

  int count() const { return count_; }
  // Of the ratios; 0 for no pair.
  double Mean() const { return mean_; }
  // Standard error of the mean; infinite for fewer than two pairs.
  double Error() const {
    if (count_ < 2) return INFINITY;
    return std::sqrt(squares_ / (count_ - 1) / count_);
  }
  // Half of the width of the 95 % interval by Student's t.
  double HalfWidth95() const { return Error() * StudentQuantile975(count_ - 1); }
  double MeanNumerator() const { return numerators_ / std::max(1, count_); }
  double MeanDenominator() const { return denominators_ / std::max(1, count_); }

 private:
  int count_ = 0;
  double mean_ = 0, squares_ = 0;
  double numerators_ = 0, denominators_ = 0;
};

}  // namespace tokenrouter
