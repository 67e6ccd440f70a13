// The kinds of faults of the simulation. worker_faults.cc, gateway_faults.cc and
// scheduler_faults.cc say what each does to a deployment; fault_schedule.cc draws which happen.
#pragma once

#include <cstdint>
#include <span>

#include "absl/time/time.h"

namespace tokenrouter::simulation {

struct Deployment;
struct FaultKind;

struct Fault {
  const FaultKind* kind = nullptr;
  absl::Duration at;     // From the start of the run.
  absl::Duration lasts;  // How long it lasts, for the kinds that do.
  uint64_t pick = 0;     // Whom it hits, modulo their number.
  bool hard = false;     // The nastier of two variants, for the kinds that have them.
};

struct FaultKind {
  const char* name;
  int weight;  // How often it is drawn, against the others.
  void (*happens)(Deployment* deployment, const Fault& fault);
};

std::span<const FaultKind> WorkerFaults();
std::span<const FaultKind> GatewayFaults();
std::span<const FaultKind> SchedulerFaults();

}  // namespace tokenrouter::simulation
