// Decides whether requests are served routed (small and large model) or by the large model alone.
// Routing pays while the large model alone is bound by memory and loses once it is bound by
// compute; letting the large model write more never lowers quality, so choosing the faster is safe.
// Two pure steps: predict both from the curves and the load, follow the better one with hysteresis.
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

struct ModePrediction {
  BatchingPolicy policy;    // Of routed service: the tuner's choice.
  double routed_per_s = 0;  // Committed tokens of all requests together.
  double large_alone_per_s = 0;
  double routed_ms_per_token = 0;  // Mean of one request.
  double large_alone_ms_per_token = 0;

  ServiceMode Better() const {
    return routed_per_s >= large_alone_per_s ? ServiceMode::kRouted : ServiceMode::kLargeAlone;
  }
  // Rate of the better mode over the other, at least 1.
  double Gain() const;
};

// `setup.requests` are decoding now. Decoding only: WithPrompts (prompt_worth.h)
// adds the prompts. INVALID_ARGUMENT as Simulate.
absl::StatusOr<ModePrediction> PredictModes(const SimulationSetup& setup,
                                            const TunerOptions& options = {});

struct ModeOptions {
  double least_gain = 0.03;                // The other mode must be better by this,
  absl::Duration hold = absl::Seconds(2);  // for so long without a break.
};

struct ModeState {
  ServiceMode mode = ServiceMode::kRouted;
  bool decided = false;  // False: the first prediction decides at once.
  // Since when the other mode has been better by enough; InfiniteFuture: it is not.
  absl::Time other_better_since = absl::InfiniteFuture();
};

ModeState NextMode(const ModeState& state, const ModePrediction& prediction, absl::Time now,
                   const ModeOptions& options = {});

}  // namespace tokenrouter
