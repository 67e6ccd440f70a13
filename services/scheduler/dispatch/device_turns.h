// DeviceTurns grants, takes back and expires the leases of workers that share a device. The policy
// is in turn_lease.h.
// Threads: lives on the scheduler's loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/scheduler/state/core_state.h"
#include "services/scheduler/workers/turn_lease.h"

namespace tokenrouter {

class DeviceTurns {
 public:
  // `state` must outlive this object.
  explicit DeviceTurns(CoreState* state) : state_(state) {}

  void OnReturn(AttachedWorker* worker, const v1::LeaseReturn& lease);
  // REQUIRES: called before the worker leaves the directory.
  void OnGone(const AttachedWorker& worker);
  void ExpireDue();
  // Grants every free device to whoever should run now, and cuts turns short for what has become
  // urgent meanwhile.
  void GrantFree();

 private:
  TurnSnapshot SnapshotOf(const Device& device);
  void GrantOn(Device* device);
  void ShortenOn(Device* device);
  void Tell(const AttachedWorker& worker, int64_t max_ms, int32_t yield_at_departures);
  void CountOutcome(Role role, LeaseOutcome outcome);

  CoreState* const state_;
  uint64_t last_turn_ = 0;
  std::vector<TurnSnapshot::Member> members_;  // Reused.
};

}  // namespace tokenrouter
