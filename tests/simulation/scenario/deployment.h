// Deployment is what runs in a simulation: every process, the network name of the scheduler, the
// clock. Faults act on it, checks look at it.
// Ownership: owns all processes. Single-threaded.
#pragma once

#include <memory>
#include <vector>

#include "tests/simulation/process/simulated_gateway.h"
#include "tests/simulation/process/simulated_worker.h"

namespace tokenrouter::simulation {

struct Deployment {
  explicit Deployment(uint64_t seed) : random(seed), timeline(&events) {}

  EventQueue events;
  RandomSource random;
  Timeline timeline;
  // The second one runs only while it takes over from the first, or the other way round.
  std::unique_ptr<SimulatedScheduler> schedulers[2];
  std::unique_ptr<SchedulerAddress> address;
  std::vector<std::unique_ptr<DeviceUse>> devices;  // One per pair.
  std::vector<std::unique_ptr<SimulatedWorker>> workers;
  std::vector<std::unique_ptr<SimulatedGateway>> gateways;

  SimulatedScheduler& scheduler() const { return *address->current(); }
  // The scheduler to which the name does not lead.
  SimulatedScheduler* Spare() const {
    return schedulers[address->current() == schedulers[0].get() ? 1 : 0].get();
  }
  SimulatedWorker& WorkerAt(uint64_t pick) const { return *workers[pick % workers.size()]; }
  SimulatedGateway& GatewayAt(uint64_t pick) const { return *gateways[pick % gateways.size()]; }
};

}  // namespace tokenrouter::simulation
