// Decides whether requests are served routed (small and large model) or large-only.
// Routing pays while large-only service is bound by memory and loses once it is bound by compute;
// decoding more tokens on the large model never lowers quality, so choosing the faster is safe.
// Two pure steps: predict both from the curves and the load, follow the better one with hysteresis.
// The better mode is the one that finishes whole requests faster, prompts included. Where both are
// about equal, it is the one with the lower time per token.
// Threads: pure functions; PredictModes runs the tuner, so call it from a background thread.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "libs/batching_model/simulator.h"
#include "libs/batching_model/tuner.h"

namespace tokenrouter {

enum class ServiceMode {
  kRouted,      // -> kLargeAlone
  kLargeAlone,  // -> kRouted
};

// The mode with the lower time per token may be slower about whole requests by this share. Together
// with the hysteresis it takes over where it is slower by 5 % at most.
inline constexpr double kNearTie = 0.08;

struct ModePrediction {
  BatchingPolicy policy;    // Of routed service: the tuner's choice.
  double routed_per_s = 0;  // Committed tokens of all requests together.
  double large_alone_per_s = 0;
  // Mean of one request while no prompt is prefilled. 0: not known, and then it favours neither
  // mode.
  double routed_ms_per_token = 0;
  double large_alone_ms_per_token = 0;

  // Above 1 where routed service is better: the ratio of the rates, times that of the speeds of the
  // next token as far as that lies within a near tie.
  double RoutedAdvantage() const;
  ServiceMode Better() const {
    return RoutedAdvantage() >= 1 ? ServiceMode::kRouted : ServiceMode::kLargeAlone;
  }
  // Advantage of the better mode over the other, at least 1.
  double Gain() const;
};

// `setup.requests` are decoding now. The prediction covers decoding only: WithPrompts
// (prompt_worth.h) adds the prompts. INVALID_ARGUMENT as Simulate.
absl::StatusOr<ModePrediction> PredictModes(const SimulationSetup& setup,
                                            const TunerOptions& options = {});

struct ModeOptions {
  double least_gain = 0.03;                // The other mode must be better by this,
  absl::Duration hold = absl::Seconds(2);  // for so long without a break.
};

struct ModeState {
  ServiceMode mode = ServiceMode::kRouted;
  bool decided = false;  // False: the first prediction decides at once.
  // The time since which the other mode has been better by enough; InfiniteFuture: it is not.
  absl::Time other_better_since = absl::InfiniteFuture();
};

ModeState NextMode(const ModeState& state, const ModePrediction& prediction, absl::Time now,
                   const ModeOptions& options = {});

}  // namespace tokenrouter
