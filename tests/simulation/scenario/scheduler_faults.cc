// What can happen to the scheduler, alone or with a second one beside it.
#include <algorithm>

#include "tests/simulation/scenario/deployment.h"
#include "tests/simulation/scenario/faults.h"

namespace tokenrouter::simulation {
namespace {

constexpr absl::Duration kLongestRestart = absl::Seconds(1);
constexpr absl::Duration kMostSkew = absl::Seconds(100);

// A next scheduler's clock may be behind.
absl::Duration SkewOf(const Fault& fault) {
  if (!fault.hard) return absl::ZeroDuration();
  return -absl::Milliseconds(fault.pick % absl::ToInt64Milliseconds(kMostSkew));
}

void StartLater(Deployment* deployment, const Fault& fault) {
  const SchedulerAddress* const address = deployment->address.get();
  deployment->events.After(std::min(fault.lasts, kLongestRestart), [address, skew = SkewOf(fault)] {
    SimulatedScheduler& scheduler = *address->current();
    if (!scheduler.running()) scheduler.Start(skew);
  });
}

void Kill(Deployment* deployment, const Fault& fault) {
  deployment->scheduler().Kill();
  StartLater(deployment, fault);
}

// The end of a drain: the streams end in order, and a successor starts.
void Drain(Deployment* deployment, const Fault& fault) {
  deployment->scheduler().Stop();
  StartLater(deployment, fault);
}

void Freeze(Deployment* deployment, const Fault& fault) {
  deployment->timeline.Note(deployment->scheduler().name(), "is suspended");
  deployment->scheduler().Freeze(fault.lasts);
}

// A second scheduler begins while the first one lives, and for a while either may be dialled. Peers
// that have heard the later term make the earlier one begin a term later still, and so to and fro.
void TakeOver(Deployment* deployment, const Fault& fault) {
  SchedulerAddress* const address = deployment->address.get();
  SimulatedScheduler* const former = address->current();
  const bool first_is_current = former == deployment->schedulers[0].get();
  SimulatedScheduler* const next = deployment->schedulers[first_is_current ? 1 : 0].get();
  if (next->running()) return;
  next->Start(SkewOf(fault));
  address->TakeOver(next, fault.pick % 2 == 0 ? 0.0 : 0.5);
  deployment->events.After(fault.lasts, [address, former] {
    if (address->current() == former) return;  // It has taken over again.
    former->Kill();
    if (address->former() == former) address->ForgetFormer();
  });
}

constexpr FaultKind kKinds[] = {
    {"scheduler dies", 3, Kill},
    {"scheduler is replaced in order", 1, Drain},
    {"scheduler is suspended", 1, Freeze},
    {"second scheduler takes over", 1, TakeOver},
};

}  // namespace

std::span<const FaultKind> SchedulerFaults() { return kKinds; }

}  // namespace tokenrouter::simulation
