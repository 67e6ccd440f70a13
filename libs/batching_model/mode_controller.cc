#include "libs/batching_model/mode_controller.h"

#include <algorithm>

#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

// Tokens per second; a mode that makes none still has a ratio to the other.
constexpr double kNothing = 1e-6;

}  // namespace

double ModePrediction::RoutedAdvantage() const {
  const double whole = std::max(routed_per_s, kNothing) / std::max(large_alone_per_s, kNothing);
  if (routed_ms_per_token <= 0 || large_alone_ms_per_token <= 0) return whole;
  return whole * std::clamp(large_alone_ms_per_token / routed_ms_per_token, 1.0 / (1.0 + kNearTie),
                            1.0 + kNearTie);
}

double ModePrediction::Gain() const {
  const double advantage = RoutedAdvantage();
  return std::max(advantage, 1.0 / advantage);
}

absl::StatusOr<ModePrediction> PredictModes(const SimulationSetup& setup,
                                            const TunerOptions& options) {
  TR_ASSIGN_OR_RETURN(const TunedPolicy tuned, Tune(setup, options));
  ModePrediction prediction{.policy = tuned.policy,
                            .routed_per_s = tuned.predicted.committed_per_s,
                            .large_alone_per_s = AloneRate(setup.large, setup.requests)};
  // In a closed loop every request decodes at the same mean rate.
  prediction.routed_ms_per_token = 1000.0 * setup.requests / prediction.routed_per_s;
  prediction.large_alone_ms_per_token = 1000.0 * setup.requests / prediction.large_alone_per_s;
  return prediction;
}

ModeState NextMode(const ModeState& state, const ModePrediction& prediction, absl::Time now,
                   const ModeOptions& options) {
  if (!state.decided) return {.mode = prediction.Better(), .decided = true};
  ModeState next = state;
  if (prediction.Better() == state.mode || prediction.Gain() <= 1.0 + options.least_gain) {
    next.other_better_since = absl::InfiniteFuture();
    return next;
  }
  next.other_better_since = std::min(state.other_better_since, now);
  if (now - next.other_better_since < options.hold) return next;
  return {.mode = prediction.Better(), .decided = true};
}

}  // namespace tokenrouter
