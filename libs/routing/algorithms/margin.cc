#include "libs/routing/algorithms/margin.h"

#include "libs/routing/algorithms/single_token.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {

absl::StatusOr<std::unique_ptr<const Algorithm>> MarginAlgorithm::Create(
    const AlgorithmParameters& parameters) {
  TR_ASSIGN_OR_RETURN(
      const std::vector<double> values,
      ReadParameters(kName, {{.name = "threshold", .low = 0, .high = 1}}, parameters));
  return std::make_unique<const MarginAlgorithm>(values[0]);
}

SignalRequest MarginAlgorithm::Signals(Role role) const { return {.margin = role == Role::kSmall}; }

Decision MarginAlgorithm::Route(const RouteStep& step, RequestState* /*state*/) const {
  if (step.role == Role::kLarge) return HandBack();

  // Written so that NaN routes: a token that cannot be judged goes to the better model.
  if (step.signals.margin > threshold_) return Decision::Stay();
  return AskLarge();
}

}  // namespace tokenrouter
