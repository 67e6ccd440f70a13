#include "services/scheduler/pair_model/mode_choice.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace tokenrouter {
namespace {

double RateOf(const ModePrediction& prediction, ServiceMode mode) {
  return mode == ServiceMode::kRouted ? prediction.routed_per_s : prediction.large_alone_per_s;
}

// What was said of `mode` is but this share of what it does.
ModePrediction Raise(ModePrediction prediction, ServiceMode mode, double share) {
  const bool routed = mode == ServiceMode::kRouted;
  (routed ? prediction.routed_per_s : prediction.large_alone_per_s) /= share;
  (routed ? prediction.routed_ms_per_token : prediction.large_alone_ms_per_token) *= share;
  return prediction;
}

}  // namespace

ServiceMode ModeChoice::Other() const {
  return mode() == ServiceMode::kRouted ? ServiceMode::kLargeAlone : ServiceMode::kRouted;
}

bool ModeChoice::TakeProbe(absl::Time now) {
  const bool due = ProbeDue(now);
  ++unprobed_;
  if (!due) return false;
  probed_at_ = now;
  unprobed_ = 0;
  return true;
}

bool ModeChoice::FallsNow(int32_t load, absl::Time now) {
  if (load >= load_ * (1.0 - options_.load_step)) {
    fell_at_ = absl::InfiniteFuture();
    return false;
  }
  fell_at_ = std::min(fell_at_, now);
  return now - fell_at_ < options_.fallen_for;
}

void ModeChoice::Follow(int32_t live, const PlannedLoad& plan, double uncertainty, absl::Time now) {
  // A moment without a request says nothing against the load of the others.
  const bool idle = live == 0 && load_ > 0;
  const bool known = plan.requests > 0 && live > 0 && !FallsNow(live, now);
  rates_.Follow(mode(), live, idle ? load_ : known ? plan.requests : 0, now);
  const ServiceMode before = mode();
  if (known) {
    state_ = Next(plan, uncertainty, now);
    if (!on_trial_) served_[ServiceRates::SizeOf(load_)] = mode();
  } else if (live > (1.0 + options_.load_step) * load_) {
    // Its plan is being made.
    state_.mode = served_[ServiceRates::SizeOf(live)].value_or(mode());
  }
  if (mode() == before) return;
  ++switches_;
  probed_at_ = now;  // What led here was seen just now.
  unprobed_ = 0;
}

ModeState ModeChoice::Next(const PlannedLoad& plan, double uncertainty, absl::Time now) {
  const int32_t load = plan.requests;
  if (std::abs(load - load_) > options_.load_step * load_) {
    load_ = load;
    state_.decided = false;  // Patience is for estimates that waver, not for another load.
    on_trial_ = false;
  }
  if (on_trial_) {
    if (now >= tried_until_) rates_.Conclude();
    if (now < tried_until_ && rates_.Windows(mode(), load) <= tried_windows_) return state_;
    on_trial_ = false;
    state_.decided = false;
  }
  const bool measured = rates_.Measured(mode(), load).has_value();
  const bool other_measured = rates_.Measured(Other(), load).has_value();
  ModeState next = state_;
  if (Sure(uncertainty) || (measured && other_measured)) {
    next = NextMode(state_, rates_.Correct(plan.prediction, load), now, options_.hysteresis);
  }
  if (next.mode == mode() && measured && Doubts(plan, uncertainty)) {
    on_trial_ = true;
    tried_until_ = now + options_.most_trial;
    tried_windows_ = rates_.Windows(Other(), load);
    return {.mode = Other(), .decided = true};
  }
  return next;
}

bool ModeChoice::Doubts(const PlannedLoad& plan, double uncertainty) const {
  const int32_t load = plan.requests;
  const int tried = rates_.Windows(Other(), load);
  if (tried >= options_.patient_windows) return false;
  const auto fair = [&](ServiceMode mode) {
    return *rates_.Measured(mode, load) >= options_.fair_share * RateOf(plan.prediction, mode);
  };
  if (tried > 0) return fair(Other()) && MayBeBetter(plan, options_.near_share);
  if (Sure(uncertainty)) return !fair(mode()) || MayBeBetter(plan, options_.near_share);
  return rates_.Windows(mode(), load) >= options_.patient_windows &&
         MayBeBetter(plan, 1.0 - uncertainty);
}

bool ModeChoice::MayBeBetter(const PlannedLoad& plan, double share) const {
  if (share <= 0) return true;
  const ModePrediction corrected = rates_.Correct(plan.prediction, plan.requests, Other());
  const ModePrediction hoped = Raise(corrected, Other(), share);
  return hoped.Better() == Other() && hoped.Gain() > 1.0 + options_.hysteresis.least_gain;
}

}  // namespace tokenrouter
