#include "services/scheduler/mode_choice.h"

#include <cmath>
#include <cstdlib>
#include <optional>

namespace tokenrouter {
namespace {

double RateOf(const ModePrediction& prediction, ServiceMode mode) {
  return mode == ServiceMode::kRouted ? prediction.routed_per_s : prediction.large_alone_per_s;
}

}  // namespace

ServiceMode ModeChoice::Other() const {
  return mode() == ServiceMode::kRouted ? ServiceMode::kLargeAlone : ServiceMode::kRouted;
}

bool ModeChoice::TakeProbe(absl::Time now) {
  if (now - probed_at_ < options_.probe_interval) return false;
  probed_at_ = now;
  return true;
}

void ModeChoice::Follow(int32_t live, const PairPlan* plan, bool certain, absl::Time now) {
  // A moment without a request says nothing against the load of the others.
  const bool idle = live == 0 && load_ > 0;
  rates_.Follow(mode(), live, idle ? load_ : plan != nullptr ? plan->inputs.requests : 0, now);
  if (plan == nullptr || live == 0) return;
  const ServiceMode before = mode();
  state_ = Next(*plan, certain, now);
  if (mode() == before) return;
  ++switches_;
  probed_at_ = now;  // What led here was seen just now.
}

ModeState ModeChoice::Next(const PairPlan& plan, bool certain, absl::Time now) {
  const int32_t load = plan.inputs.requests;
  if (std::abs(load - load_) > options_.load_step * load_) {
    load_ = load;
    state_.decided = false;  // Patience is for estimates that waver, not for another load.
    on_trial_ = false;
  }
  if (on_trial_) {
    if (now >= tried_until_) rates_.Conclude();
    if (now < tried_until_ && !rates_.Measured(mode(), load)) return state_;
    on_trial_ = false;
    state_.decided = false;
  }
  const bool measured = rates_.Measured(mode(), load).has_value();
  const bool other_measured = rates_.Measured(Other(), load).has_value();
  ModeState next = state_;
  if (certain || (measured && other_measured)) {
    next = NextMode(state_, rates_.Correct(plan.prediction, load), now, options_.hysteresis);
  }
  if (next.mode == mode() && measured && !other_measured && Doubts(plan, certain)) {
    on_trial_ = true;
    tried_until_ = now + options_.most_trial;
    return {.mode = Other(), .decided = true};
  }
  return next;
}

bool ModeChoice::Doubts(const PairPlan& plan, bool certain) const {
  const ModePrediction& said = plan.prediction;
  const double measured = *rates_.Measured(mode(), plan.inputs.requests);
  return !certain || measured < options_.fair_share * RateOf(said, mode()) ||
         measured < options_.clear_gain * RateOf(said, Other());
}

}  // namespace tokenrouter
