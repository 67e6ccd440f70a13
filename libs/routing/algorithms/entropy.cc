#include "libs/routing/algorithms/entropy.h"

#include "libs/routing/algorithms/single_token.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {

absl::StatusOr<std::unique_ptr<const Algorithm>> EntropyAlgorithm::Create(
    const AlgorithmParameters& parameters) {
  TR_ASSIGN_OR_RETURN(
      const std::vector<double> values,
      ReadParameters(
          kName,
          {{.name = "threshold", .low = 0, .high = kMaxThreshold, .fallback = kDefaultThreshold}},
          parameters));
  return std::make_unique<const EntropyAlgorithm>(values[0]);
}

SignalRequest EntropyAlgorithm::Signals(Role /*role*/) const { return {}; }

Decision EntropyAlgorithm::Route(const RouteStep& step, RequestState* /*state*/) const {
  if (step.role == Role::kLarge) return HandBack();

  // Written so that NaN routes: a token that cannot be judged goes to the better model.
  if (step.signals.entropy < threshold_) return Decision::Stay();
  return AskLarge();
}

}  // namespace tokenrouter
