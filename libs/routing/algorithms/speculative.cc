#include "libs/routing/algorithms/speculative.h"

#include "libs/routing/algorithms/single_token.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {

absl::StatusOr<std::unique_ptr<const Algorithm>> SpeculativeAlgorithm::Create(
    const AlgorithmParameters& parameters) {
  TR_ASSIGN_OR_RETURN(const std::vector<double> values, ReadParameters(kName,
                                                                       {{.name = "window",
                                                                         .low = 1,
                                                                         .high = kMaxWindow,
                                                                         .fallback = kDefaultWindow,
                                                                         .whole = true}},
                                                                       parameters));
  return std::make_unique<const SpeculativeAlgorithm>(static_cast<int32_t>(values[0]));
}

SignalRequest SpeculativeAlgorithm::Signals(Role /*role*/) const { return {}; }

Decision SpeculativeAlgorithm::Route(const RouteStep& step, RequestState* /*state*/) const {
  if (step.role == Role::kLarge) return HandBack();

  const auto drafted = static_cast<int32_t>(step.tail.size()) + 1;  // The proposal included.
  if (drafted < window_) return Decision::StayTentative();
  return Decision::Go(Role::kLarge, Window::OwnRule(), Decision::Proposal::kTentative);
}

int32_t SpeculativeAlgorithm::Receive(const Arrival& arrival, RequestState* /*state*/) const {
  int32_t keep = 0;
  const auto size = static_cast<int32_t>(arrival.tail.size());
  while (keep < size && arrival.tail[keep] == arrival.choices[keep].id) ++keep;
  return keep;
}

}  // namespace tokenrouter
