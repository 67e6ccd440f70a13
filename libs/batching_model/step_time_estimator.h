// Learns t(rows, new ids) of one side from the steps it ran: a base, a slope in rows and one in ids
// that grows at each of two bends, since few ids are bound by memory and cost next to nothing. By
// recursive least squares on relative errors. Forgetting is directional: old steps fade only where
// new ones say the same thing, so an hour at one shape does not erase what other shapes cost. While
// fewer than two distinct shapes were seen the prediction is flat. Predictions are never negative
// and never fall with rows or ids. Threads: not thread-safe. Units: milliseconds. Cost: O(1) per
// call.
#pragma once

#include <array>
#include <cstdint>

namespace tokenrouter {

class StepTimeEstimator {
 public:
  static constexpr int64_t kBends[] = {8, 64};  // Ids.

  struct Coefficients {
    double base_ms = 0;
    double row_ms = 0;
    double id_ms = 0;
    double bend_ms[2] = {0, 0};  // What each id beyond kBends costs more.

    double At(int rows, int64_t new_ids) const;
    // Of one id more where there are many.
    double LateIdMs() const { return id_ms + bend_ms[0] + bend_ms[1]; }
  };

  // REQUIRES: rows >= 0, new_ids >= 0. A time that is not positive and finite is ignored.
  void Observe(int rows, int64_t new_ids, double milliseconds);

  // 0 before the first observation.
  double Predict(int rows, int64_t new_ids) const;
  const Coefficients& coefficients() const { return fitted_; }
  // Relative standard deviation of single steps around the prediction; 0 before the second step.
  double RelativeSpread() const;
  // Relative standard error of the prediction itself: large where no step like it was seen.
  double Uncertainty(int rows, int64_t new_ids) const;
  // How far the newest steps are from the prediction, relative, signed; grows when the device
  // changes faster than the fit follows.
  double Drift() const { return drift_; }
  int64_t observations() const { return observations_; }

 private:
  static constexpr int kTerms = 5;
  static constexpr unsigned kAllTerms = (1u << kTerms) - 1;
  using Vector = std::array<double, kTerms>;
  using Matrix = std::array<Vector, kTerms>;

  static Vector ShapeOf(int rows, int64_t new_ids, double predicted);
  static Vector SolveActive(Matrix m, Vector b, unsigned active);

  void Start(double milliseconds);
  void Forget(const Vector& shape);
  void Learn(const Vector& shape, double relative_error);
  void Fit();
  void Adopt(const Vector& terms);

  int64_t observations_ = 0;
  int first_rows_ = 0;
  int64_t first_ids_ = 0;
  bool distinct_shapes_ = false;
  Vector estimate_{};     // Unconstrained; any sign.
  Matrix information_{};  // Inverse covariance of estimate_, in units of the relative spread.
  Coefficients fitted_;   // The nearest to estimate_ under information_ with none negative.
  double squares_ = 0;    // Faded sum of squared relative errors, and of their weights.
  double weight_ = 0;
  double drift_ = 0;
};

}  // namespace tokenrouter
