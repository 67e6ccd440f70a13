#include "libs/routing/algorithms/always.h"

#include "libs/status/status_macros.h"

namespace tokenrouter {

absl::StatusOr<std::unique_ptr<const Algorithm>> AlwaysAlgorithm::Create(
    const AlgorithmParameters& parameters) {
  TR_RETURN_IF_ERROR(ReadParameters(kName, {}, parameters).status());
  return std::make_unique<const AlwaysAlgorithm>();
}

SignalRequest AlwaysAlgorithm::Signals(Role /*role*/) const { return {}; }

Opening AlwaysAlgorithm::Open() const { return {Role::kLarge, Window::UntilEnd()}; }

Decision AlwaysAlgorithm::Route(const RouteStep& /*step*/, RequestState* /*state*/) const {
  return Decision::Stay();
}

}  // namespace tokenrouter
