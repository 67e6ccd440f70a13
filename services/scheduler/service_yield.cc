#include "services/scheduler/service_yield.h"

#include <algorithm>

namespace tokenrouter {
namespace {

constexpr absl::Duration kWindow = absl::Seconds(2);
// After a change of mode what runs is still that of the other one.
constexpr absl::Duration kSettle = absl::Seconds(2);
constexpr double kLearn = 0.3;  // Of each window.
constexpr double kFade = 0.02;  // Towards 1, of the mode that is not in force, per window.
constexpr double kLeast = 0.3;
constexpr double kMost = 1.3;

}  // namespace

void ServiceYield::Begin(absl::Time from) {
  begin_ = from;
  committed_ = 0;
  expected_ = 0;
  served_ = absl::ZeroDuration();
}

void ServiceYield::Follow(ServiceMode mode, int32_t live, double predicted_per_request,
                          absl::Time now) {
  const absl::Duration step = live_ > 0 ? now - seen_ : absl::ZeroDuration();
  const double tokens = live_ * predicted_per_request * absl::ToDoubleSeconds(step);
  seen_ = now;
  live_ = live;
  if (mode != mode_) {
    mode_ = mode;
    return Begin(now + kSettle);
  }
  if (predicted_per_request <= 0 || now < begin_) return Begin(std::max(begin_, now));
  served_ += step;
  expected_ += tokens;
  if (served_ >= kWindow) Finish(now);
}

void ServiceYield::Finish(absl::Time now) {
  const int own = static_cast<int>(mode_);
  const double measured = static_cast<double>(committed_) / std::max(expected_, 1e-9);
  yields_[own] += kLearn * (std::clamp(measured, kLeast, kMost) - yields_[own]);
  yields_[1 - own] += kFade * (1 - yields_[1 - own]);
  Begin(now);
}

ModePrediction ServiceYield::Correct(ModePrediction prediction) const {
  const double routed = Of(ServiceMode::kRouted);
  const double large_alone = Of(ServiceMode::kLargeAlone);
  prediction.routed_per_s *= routed;
  prediction.routed_ms_per_token /= routed;
  prediction.large_alone_per_s *= large_alone;
  prediction.large_alone_ms_per_token /= large_alone;
  return prediction;
}

}  // namespace tokenrouter
