#include "libs/batching_model/rate_estimator.h"

#include <algorithm>
#include <cmath>

#include "libs/status/check.h"

namespace tokenrouter {
namespace {

constexpr double kSigmas = 1.96;        // 95 %.
constexpr double kRelativeMove = 0.25;  // Of the planned rate.

}  // namespace

RateEstimator::RateEstimator(double prior, double memory) : prior_(prior) {
  TR_CHECK(prior >= 0 && prior <= 1 && memory >= 1) << "prior " << prior << ", memory " << memory;
  keep_ = 1.0 - 1.0 / memory;
}

void RateEstimator::Observe(int64_t trials, int64_t yes) {
  TR_CHECK(yes >= 0 && yes <= trials) << yes << " of " << trials;
  if (trials == 0) return;
  // The sum of `trials` faded trials, each with the batch's share of yes.
  const double kept = std::pow(keep_, static_cast<double>(trials));
  const double added = keep_ > 0 ? (1.0 - kept) / (1.0 - keep_) : 1.0;
  trials_ = kept * trials_ + added;
  yes_ = kept * yes_ + added * static_cast<double>(yes) / static_cast<double>(trials);
}

double RateEstimator::mean() const { return (yes_ + prior_) / (trials_ + 1.0); }

double RateEstimator::Bound(double sign) const {
  if (trials_ == 0) return sign < 0 ? 0.0 : 1.0;
  const double p = yes_ / trials_, z2 = kSigmas * kSigmas;
  const double half = kSigmas * std::sqrt(p * (1 - p) / trials_ + z2 / (4 * trials_ * trials_));
  return std::clamp((p + z2 / (2 * trials_) + sign * half) / (1 + z2 / trials_), 0.0, 1.0);
}

double RateEstimator::Lower() const { return Bound(-1); }
double RateEstimator::Upper() const { return Bound(1); }

bool RetuneGate::Moved(const RateEstimator& rate) const {
  if (!planned_) return true;
  const double half = (rate.Upper() - rate.Lower()) / 2;
  return std::abs(rate.mean() - reference_) > std::max(kRelativeMove * reference_, half);
}

void RetuneGate::Planned(const RateEstimator& rate) {
  planned_ = true;
  reference_ = rate.mean();
}

}  // namespace tokenrouter
