// What can happen to workers.
#include <algorithm>

#include "tests/simulation/scenario/deployment.h"
#include "tests/simulation/scenario/faults.h"

namespace tokenrouter::simulation {
namespace {

// Longer than any request may take (answer_checks.cc).
constexpr absl::Duration kForGood = absl::Minutes(30);

absl::Duration DownFor(const Fault& fault) { return std::min(fault.lasts, absl::Seconds(2)); }

void Kill(Deployment* deployment, const Fault& fault) {
  deployment->WorkerAt(fault.pick).Kill(DownFor(fault));
}

// A rack or a zone: every other worker, or all of them, at one moment.
void KillMany(Deployment* deployment, const Fault& fault) {
  for (size_t i = 0; i < deployment->workers.size(); ++i) {
    const bool hit = fault.hard || (i + fault.pick) % 2 == 0;
    if (hit) deployment->workers[i]->Kill(DownFor(fault));
  }
}

void Cut(Deployment* deployment, const Fault& fault) {
  deployment->WorkerAt(fault.pick).Cut(/*half_open=*/fault.hard);
}

void Freeze(Deployment* deployment, const Fault& fault) {
  deployment->WorkerAt(fault.pick).Freeze(fault.lasts);
}

// The loop stands still and the heartbeats go on: for a while, or until somebody notices.
void Hang(Deployment* deployment, const Fault& fault) {
  deployment->WorkerAt(fault.pick).Hang(fault.hard ? kForGood : fault.lasts);
}

void FailSteps(Deployment* deployment, const Fault& fault) {
  deployment->WorkerAt(fault.pick).SpoilSteps(fault.hard ? 4 : 1, absl::ZeroDuration());
}

void SlowStep(Deployment* deployment, const Fault& fault) {
  deployment->WorkerAt(fault.pick).SpoilSteps(0, fault.lasts);
}

// A rolling update: asked for at the worker, or at the scheduler first.
void Drain(Deployment* deployment, const Fault& fault) {
  SimulatedWorker& worker = deployment->WorkerAt(fault.pick);
  if (fault.hard) {
    deployment->scheduler().DrainWorker(worker.process()).IgnoreError();
    deployment->timeline.Note(worker.process(), "is drained at the scheduler");
  }
  worker.Drain(fault.lasts, absl::Milliseconds(1 + fault.pick % 1000));
}

constexpr FaultKind kKinds[] = {
    {"worker dies", 4, Kill},
    {"many workers die", 1, KillMany},
    {"worker is cut off", 2, Cut},
    {"worker is suspended", 2, Freeze},
    {"worker hangs, its heart beats", 1, Hang},
    {"steps fail", 1, FailSteps},
    {"a step is slow", 1, SlowStep},
    {"worker is drained", 1, Drain},
};

}  // namespace

std::span<const FaultKind> WorkerFaults() { return kKinds; }

}  // namespace tokenrouter::simulation
