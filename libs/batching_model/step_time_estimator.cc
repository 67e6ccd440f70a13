#include "libs/batching_model/step_time_estimator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "libs/status/check.h"

namespace tokenrouter {
namespace {

constexpr double kForgetting = 0.99;
constexpr double kDriftForgetting = 0.9;
// The prior before any step, as a share of one step's information. The prior that slopes are zero
// is a thousand times stronger than that of the base, so that few steps of near shapes stay near
// flat.
constexpr double kBasePrior = 1e-6;
constexpr double kSlopePrior = 1e-3;
// That of the bends is a thousand times stronger still: a line is bent only by steps on both sides.
constexpr double kBendPrior = 1;
// One stalled step must not move the fit far. A device that really became slower still gets
// through: the prediction follows, and the clip with it.
constexpr double kMostError = 3.0;
constexpr int kUnclippedSteps = 8;

template <typename Vector>
double Dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double Beyond(int64_t new_ids, int bend) {
  return static_cast<double>(std::max<int64_t>(0, new_ids - StepTimeEstimator::kBends[bend]));
}

}  // namespace

double StepTimeEstimator::Coefficients::At(int rows, int64_t new_ids) const {
  return base_ms + row_ms * rows + id_ms * static_cast<double>(new_ids) +
         bend_ms[0] * Beyond(new_ids, 0) + bend_ms[1] * Beyond(new_ids, 1);
}

StepTimeEstimator::Vector StepTimeEstimator::ShapeOf(int rows, int64_t new_ids, double predicted) {
  Vector shape = {1, static_cast<double>(rows), static_cast<double>(new_ids), Beyond(new_ids, 0),
                  Beyond(new_ids, 1)};
  for (double& term : shape) term /= predicted;
  return shape;
}

// Solves m x = b restricted to the terms in `active`; the others are 0. m is positive definite.
StepTimeEstimator::Vector StepTimeEstimator::SolveActive(Matrix m, Vector b, unsigned active) {
  for (int i = 0; i < kTerms; ++i) {
    if (active >> i & 1) continue;
    for (int j = 0; j < kTerms; ++j) m[i][j] = m[j][i] = 0;
    m[i][i] = 1;
    b[i] = 0;
  }
  for (int i = 0; i < kTerms; ++i) {
    for (int row = i + 1; row < kTerms; ++row) {
      const double factor = m[row][i] / m[i][i];
      for (int k = i; k < kTerms; ++k) m[row][k] -= factor * m[i][k];
      b[row] -= factor * b[i];
    }
  }
  for (int i = kTerms - 1; i >= 0; --i) {
    for (int k = i + 1; k < kTerms; ++k) b[i] -= m[i][k] * b[k];
    b[i] /= m[i][i];
  }
  return b;
}

void StepTimeEstimator::Start(double milliseconds) {
  const double unit = 1.0 / (milliseconds * milliseconds);
  information_[0][0] = kBasePrior * unit;
  information_[1][1] = information_[2][2] = kSlopePrior * unit;
  information_[3][3] = information_[4][4] = kBendPrior * unit;
  estimate_ = {milliseconds};
  fitted_ = {.base_ms = milliseconds};
}

// Information along `shape` fades; that of shapes independent of it stays (Cao and Schwartz).
void StepTimeEstimator::Forget(const Vector& shape) {
  Vector seen;
  for (int i = 0; i < kTerms; ++i) seen[i] = Dot(information_[i], shape);
  const double along = Dot(seen, shape);
  if (!(along > 1.0)) return;  // Less than one step is known here: nothing to fade.
  for (int i = 0; i < kTerms; ++i) {
    for (int j = 0; j < kTerms; ++j) {
      information_[i][j] -= (1.0 - kForgetting) * seen[i] * seen[j] / along;
    }
  }
}

void StepTimeEstimator::Learn(const Vector& shape, double relative_error) {
  Forget(shape);
  for (int i = 0; i < kTerms; ++i) {
    for (int j = 0; j < kTerms; ++j) information_[i][j] += shape[i] * shape[j];
  }
  const Vector gain = SolveActive(information_, shape, kAllTerms);
  if (distinct_shapes_) {
    for (int i = 0; i < kTerms; ++i) estimate_[i] += gain[i] * relative_error;
  } else {  // The same move of this shape's prediction, all of it in the base.
    estimate_[0] += Dot(gain, shape) * relative_error / shape[0];
  }
}

void StepTimeEstimator::Adopt(const Vector& terms) {
  fitted_ = {
      .base_ms = terms[0], .row_ms = terms[1], .id_ms = terms[2], .bend_ms = {terms[3], terms[4]}};
}

// Of all sets of positive terms, the one whose best fit has no negative term and the least loss
// (x - estimate)' information (x - estimate).
void StepTimeEstimator::Fit() {
  const auto none_negative = [](const Vector& terms) {
    return *std::min_element(terms.begin(), terms.end()) >= 0;
  };
  if (none_negative(estimate_)) return Adopt(estimate_);
  Vector target;
  for (int i = 0; i < kTerms; ++i) target[i] = Dot(information_[i], estimate_);
  double least = std::numeric_limits<double>::infinity();
  for (unsigned active = 1; active <= kAllTerms; ++active) {
    const Vector candidate = SolveActive(information_, target, active);
    if (!none_negative(candidate)) continue;
    const double loss = -Dot(candidate, target);  // Up to a constant, at a restricted optimum.
    if (loss < least) {
      least = loss;
      Adopt(candidate);
    }
  }
}

void StepTimeEstimator::Observe(int rows, int64_t new_ids, double milliseconds) {
  TR_CHECK(rows >= 0 && new_ids >= 0) << rows << " rows, " << new_ids << " ids";
  if (!(milliseconds > 0) || !std::isfinite(milliseconds)) return;
  if (observations_ == 0) {
    Start(milliseconds);
    first_rows_ = rows;
    first_ids_ = new_ids;
  }
  distinct_shapes_ = distinct_shapes_ || rows != first_rows_ || new_ids != first_ids_;
  const double predicted = Predict(rows, new_ids);
  const Vector shape = ShapeOf(rows, new_ids, predicted);
  double error = milliseconds / predicted - 1.0;
  if (observations_ >= kUnclippedSteps) error = std::min(error, kMostError);
  // The error against the unconstrained estimate is what least squares needs.
  const double unconstrained = Dot(shape, estimate_);
  Learn(shape, error + 1.0 - unconstrained);
  Fit();
  if (observations_ > 0) {
    // A step that taught much was predicted from little data, so its error says less about the
    // spread. The share of new information in it is 1 - shape' information^-1 shape.
    const double new_share =
        std::max(0.0, 1.0 - Dot(shape, SolveActive(information_, shape, kAllTerms)));
    squares_ = kForgetting * squares_ + new_share * new_share * error * error;
    weight_ = kForgetting * weight_ + new_share;
    drift_ = kDriftForgetting * drift_ + (1.0 - kDriftForgetting) * error;
  }
  ++observations_;
}

double StepTimeEstimator::Predict(int rows, int64_t new_ids) const {
  return fitted_.At(rows, new_ids);
}

double StepTimeEstimator::RelativeSpread() const {
  return weight_ > 0 ? std::sqrt(squares_ / weight_) : 0.0;
}

double StepTimeEstimator::Uncertainty(int rows, int64_t new_ids) const {
  const double predicted = Predict(rows, new_ids);
  if (!(predicted > 0)) return std::numeric_limits<double>::infinity();
  const Vector shape = ShapeOf(rows, new_ids, predicted);
  const double variance = Dot(shape, SolveActive(information_, shape, kAllTerms));
  return RelativeSpread() * std::sqrt(std::max(0.0, variance));
}

}  // namespace tokenrouter
