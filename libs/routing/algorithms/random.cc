#include "libs/routing/algorithms/random.h"

#include "libs/routing/algorithms/single_token.h"
#include "libs/status/status_macros.h"
#include "libs/tokens/keyed_random.h"

namespace tokenrouter {

absl::StatusOr<std::unique_ptr<const Algorithm>> RandomAlgorithm::Create(
    const AlgorithmParameters& parameters) {
  TR_ASSIGN_OR_RETURN(
      const std::vector<double> values,
      ReadParameters(
          kName,
          {{.name = "p", .low = 0, .high = 1},
           {.name = "window", .low = 1, .high = kMaxWindow, .fallback = 1, .whole = true}},
          parameters));
  return std::make_unique<const RandomAlgorithm>(values[0], static_cast<int32_t>(values[1]));
}

SignalRequest RandomAlgorithm::Signals(Role /*role*/) const { return {}; }

Decision RandomAlgorithm::Route(const RouteStep& step, RequestState* /*state*/) const {
  if (step.role == Role::kLarge) return HandBack();
  const double u = KeyedUniform({.seed = step.seed,
                                 .choice = step.choice,
                                 .position = step.position,
                                 .purpose = Purpose::kRouter});
  if (u >= p_) return Decision::Stay();
  return AskLarge(window_);
}

}  // namespace tokenrouter
