// The part of Placement that keeps suspects apart. A request that ran on a worker when that was
// lost may be what it died of, and so may each of its neighbours. From then on at most one of them
// runs on any worker, in the company of requests that are not suspected, until suspect_rows of its
// rows were accepted. So a request that takes its workers down is never twice near the same
// innocent one, and is found out by its own count (WorkerLoss). Suspects wait by age, without a
// worker or with a side that is open but has no grant; nothing of theirs is read meanwhile that was
// not read before.
#include <optional>
#include <utility>

#include "services/scheduler/placement/placement.h"

namespace tokenrouter {

bool Placement::IsolationHolds(const RequestMachine& request, Role role) const {
  if (request.side(role).losses() == 0) return false;
  return request.phase() != Phase::kWaiting ||
         state_->now - request.phase().since() < state_->options.suspect_wait;
}

bool Placement::MustWaitAlone(const RequestMachine& request) const {
  const Role role = request.grant().role;
  if (!IsolationHolds(request, role)) return false;
  const uint64_t key = request.origin().key;
  if (const StreamId open_on = request.side(role).worker; open_on != 0) {
    const uint64_t suspect = state_->directory.Find(open_on)->suspect;
    return suspect != 0 && suspect != key;
  }
  const auto& workers = state_->directory.pair(request.origin().pair).workers[Index(role)];
  for (const StreamId stream : workers) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    if (!worker.draining && worker.suspect == 0) return false;
  }
  return !workers.empty();
}

void Placement::AdmitSuspects(int pair) {
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    WaitLine& line = suspects_[{pair, role}];
    std::optional<WaitLine::Spot> spot;
    while ((spot = line.Next(spot))) {
      RequestMachine* const request = state_->requests.Find(spot->second);
      if (MustWaitAlone(*request)) continue;
      line.Remove(spot->second);
      DispatchGrant(request);
    }
  }
}

}  // namespace tokenrouter
