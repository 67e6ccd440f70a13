// DeviceLeases grants, takes back and expires the leases of workers that share a device. The policy
// is in lease_policy.h.
// Threads: lives on the scheduler's loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/scheduler/state/core_state.h"
#include "services/scheduler/workers/lease_policy.h"

namespace tokenrouter {

class DeviceLeases {
 public:
  // `state` must outlive this object.
  explicit DeviceLeases(CoreState* state) : state_(state) {}

  void OnReturn(AttachedWorker* worker, const wire::LeaseReturn& lease);
  // REQUIRES: called before the worker leaves the directory.
  void OnGone(const AttachedWorker& worker);
  void ExpireDue();
  // Grants every free device to the worker that should run now, and shortens leases in force for
  // rows that have become urgent.
  void GrantFree();

 private:
  LeaseSnapshot SnapshotOf(const Device& device);
  void GrantOn(Device* device);
  void ShortenOn(Device* device);
  void SendLease(const AttachedWorker& worker, int64_t max_ms, int32_t yield_at_handoffs);
  void CountOutcome(Role role, LeaseOutcome outcome);

  CoreState* const state_;
  uint64_t last_lease_ = 0;
  std::vector<LeaseSnapshot::Member> members_;  // Reused.
};

}  // namespace tokenrouter
