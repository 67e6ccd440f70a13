#include "libs/routing/algorithms/never.h"

#include "libs/status/status_macros.h"

namespace tokenrouter {

absl::StatusOr<std::unique_ptr<const Algorithm>> NeverAlgorithm::Create(
    const AlgorithmParameters& parameters) {
  TR_RETURN_IF_ERROR(ReadParameters(kName, {}, parameters).status());
  return std::make_unique<const NeverAlgorithm>();
}

SignalRequest NeverAlgorithm::Signals(Role /*role*/) const { return {}; }

Opening NeverAlgorithm::Open() const {
  return {.role = Role::kSmall, .window = Window::UntilEnd()};
}

Decision NeverAlgorithm::Route(const RouteStep& /*step*/, RequestState* /*state*/) const {
  return Decision::Stay();
}

}  // namespace tokenrouter
