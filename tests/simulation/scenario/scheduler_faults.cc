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

// The name leads to the second scheduler while the first one lives, and for a while either may be
// dialled. Peers that have heard the later term make the earlier one begin a term later still, and
// so to and fro.
void TakeOver(Deployment* deployment, const Fault& fault) {
  SchedulerAddress* const address = deployment->address.get();
  SimulatedScheduler* const former = address->current();
  SimulatedScheduler* const next = deployment->Spare();
  if (!next->running()) return;
  deployment->timeline.Note(next->name(), "takes over");
  address->TakeOver(next, fault.pick % 2 == 0 ? 0.0 : 0.5);
  deployment->events.After(fault.lasts, [address, former] {
    if (address->current() == former) return;  // It has taken over again.
    former->Kill();
    if (address->former() == former) address->ForgetFormer();
  });
}

// The second scheduler begins as a spare, and takes over at once or a good while later.
void StartSpare(Deployment* deployment, const Fault& fault) {
  SimulatedScheduler* const spare = deployment->Spare();
  if (spare->running()) return;
  spare->Start(SkewOf(fault));
  const absl::Duration ahead = fault.pick % 3 == 0 ? absl::Seconds(5) : absl::ZeroDuration();
  deployment->events.After(ahead, [deployment, fault] { TakeOver(deployment, fault); });
}

constexpr FaultKind kKinds[] = {
    {"scheduler dies", 3, Kill},
    {"scheduler is replaced in order", 1, Drain},
    {"scheduler is suspended", 1, Freeze},
    {"second scheduler takes over", 1, StartSpare},
};

}  // namespace

std::span<const FaultKind> SchedulerFaults() { return kKinds; }

}  // namespace tokenrouter::simulation
