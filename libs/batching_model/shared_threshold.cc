#include "libs/batching_model/shared_threshold.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "libs/batching_model/binomial.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

constexpr int kFluidPatience = 40;  // Small steps tried beyond the best one.

// Time of a step of a fractional batch, by linear interpolation.
double TimeOf(StepTimes times, double rows) {
  const double clamped = std::clamp(rows, 0.0, static_cast<double>(times.size() - 1));
  const auto low = static_cast<size_t>(clamped);
  const size_t high = std::min(low + 1, times.size() - 1);
  return times[low] + (clamped - static_cast<double>(low)) * (times[high] - times[low]);
}

// q = 1: every large step empties the large queue, so cycles regenerate there; one forward pass
// over the expected visits of each queue length (section 1, "Shared device exact").
double RateOfFullReturn(const SharedDeviceModel& model, int m) {
  const int n = model.requests;
  std::vector<double> visits(static_cast<size_t>(n) + 1, 0.0);
  visits[0] = 1.0;
  double rows = 0.0, time = 0.0;
  for (int queued = 0; queued <= n; ++queued) {
    if (visits[queued] == 0.0) continue;
    if (queued >= m || queued == n) {
      rows += visits[queued] * queued;
      time += visits[queued] * model.large[queued];
      continue;
    }
    const int ready = n - queued;
    const std::vector<double> leave = BinomialMass(ready, model.r);
    const double steps = visits[queued] / (1.0 - leave[0]);  // Until at least one leaves.
    rows += steps * ready;
    time += steps * model.small[ready];
    for (int j = 1; j <= ready; ++j) visits[queued + j] += steps * leave[j];
  }
  return 1000.0 * rows / time;
}

// Solves the linear system a x = b in place by elimination with partial pivoting.
std::vector<double> Solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row) {
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    }
    std::swap(a[column], a[pivot]);
    std::swap(b[column], b[pivot]);
    for (size_t row = column + 1; row < n; ++row) {
      const double factor = a[row][column] / a[column][column];
      if (factor == 0.0) continue;
      for (size_t k = column; k < n; ++k) a[row][k] -= factor * a[column][k];
      b[row] -= factor * b[column];
    }
  }
  for (size_t row = n; row-- > 0;) {
    for (size_t k = row + 1; k < n; ++k) b[row] -= a[row][k] * b[k];
    b[row] /= a[row][row];
  }
  return b;
}

// q < 1: the average-reward equations h + g tau = reward + P h with h[0] = 0; the unknown of column
// 0 is g.
double RateOfPartialReturn(const SharedDeviceModel& model, int m) {
  const int n = model.requests;
  std::vector<std::vector<double>> a(static_cast<size_t>(n) + 1,
                                     std::vector<double>(static_cast<size_t>(n) + 1, 0.0));
  std::vector<double> reward(static_cast<size_t>(n) + 1);
  for (int queued = 0; queued <= n; ++queued) {
    const bool large = (queued >= m || queued == n) && queued > 0;
    const int rows = large ? queued : n - queued;
    const std::vector<double> moved = BinomialMass(rows, large ? model.q : model.r);
    for (int j = 0; j <= rows; ++j) a[queued][large ? queued - j : queued + j] -= moved[j];
    a[queued][queued] += 1.0;
    a[queued][0] = large ? model.large[rows] : model.small[rows];
    reward[queued] = rows;
  }
  return 1000.0 * Solve(std::move(a), std::move(reward))[0];
}

}  // namespace

int FluidThreshold(const SharedDeviceModel& model) {
  const double n = model.requests;
  double best_rate = 0.0;
  int best = 1;
  double threshold = 1.0;
  for (int steps = 1; steps <= best + kFluidPatience; ++steps) {
    const double left = std::pow(1.0 - model.r, steps);
    const double returned = 1.0 - left;
    const double large = returned * n / (1.0 - (1.0 - model.q) * left);
    double small = n - (1.0 - model.q) * large;
    double rows = large, time = TimeOf(model.large, large), before = small;
    for (int j = 0; j < steps; ++j) {
      rows += small;
      time += TimeOf(model.small, small);
      before = small;
      small *= 1.0 - model.r;
    }
    if (rows / time > best_rate) {
      best_rate = rows / time;
      best = steps;
      threshold = std::ceil(n - (before + small) / 2);
    }
  }
  return static_cast<int>(std::clamp(threshold, 1.0, n));
}

double ThresholdRate(const SharedDeviceModel& model, int m) {
  TR_CHECK(m >= 1 && m <= model.requests) << "threshold " << m << " of " << model.requests;
  return model.q >= 1.0 ? RateOfFullReturn(model, m) : RateOfPartialReturn(model, m);
}

int BestThreshold(const SharedDeviceModel& model) {
  int best = FluidThreshold(model);
  double best_rate = ThresholdRate(model, best);
  for (int step = std::max(1, best / 8); step >= 1; step /= 2) {
    for (bool improved = true; improved;) {
      improved = false;
      for (const int candidate : {best - step, best + step}) {
        if (candidate < 1 || candidate > model.requests) continue;
        const double rate = ThresholdRate(model, candidate);
        if (rate > best_rate) {
          best_rate = rate;
          best = candidate;
          improved = true;
        }
      }
    }
  }
  return best;
}

double CommittedPerRow(double r, double q) { return (1.0 - r + r / q) / (1.0 + r / q); }

}  // namespace tokenrouter
