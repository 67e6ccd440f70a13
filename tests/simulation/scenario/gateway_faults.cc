// What can happen to gateways.
#include "tests/simulation/scenario/deployment.h"
#include "tests/simulation/scenario/faults.h"

namespace tokenrouter::simulation {
namespace {

void Kill(Deployment* deployment, const Fault& fault) {
  SimulatedGateway* const gateway = &deployment->GatewayAt(fault.pick);
  gateway->Kill();
  deployment->events.After(fault.lasts, [gateway] {
    if (!gateway->running()) gateway->Start();
  });
}

void Cut(Deployment* deployment, const Fault& fault) {
  deployment->GatewayAt(fault.pick).Cut(/*half_open=*/fault.hard);
}

// It reads nothing meanwhile, so that its stream may become full.
void Freeze(Deployment* deployment, const Fault& fault) {
  SimulatedGateway& gateway = deployment->GatewayAt(fault.pick);
  deployment->timeline.Note(gateway.id(), "is suspended");
  gateway.Freeze(fault.lasts);
}

constexpr FaultKind kKinds[] = {
    {"gateway dies", 2, Kill},
    {"gateway is cut off", 2, Cut},
    {"gateway is suspended", 1, Freeze},
};

}  // namespace

std::span<const FaultKind> GatewayFaults() { return kKinds; }

}  // namespace tokenrouter::simulation
