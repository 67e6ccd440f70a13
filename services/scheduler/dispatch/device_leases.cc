#include "services/scheduler/dispatch/device_leases.h"

#include <algorithm>

namespace tokenrouter {

void DeviceLeases::CountOutcome(Role role, LeaseOutcome outcome) {
  ++state_->counters.leases[Index(role)][Index(outcome)];
}

void DeviceLeases::OnReturn(AttachedWorker* worker, const wire::LeaseReturn& lease) {
  Device* const device = state_->directory.DeviceOf(*worker);
  if (device == nullptr ||
      !device->lease.Return(worker->stream, lease.lease_id(), lease.ready() > 0, state_->now)) {
    return;
  }
  CountOutcome(worker->role, LeaseOutcome::kReturned);
  RestartQueueTimers(*state_, worker);
  // A holder that returns the lease with no ready row cannot run any row that counts as ready here,
  // for example because its memory is full; granting again at once would only spin. If a command
  // was on its way when it reported that, the report is outdated.
  worker->nothing_ready = lease.ready() == 0 && !worker->told_since_grant;
}

void DeviceLeases::OnGone(const AttachedWorker& worker) {
  Device* const device = state_->directory.DeviceOf(worker);
  if (device != nullptr && device->lease.Drop(worker.stream)) {
    CountOutcome(worker.role, LeaseOutcome::kHolderLost);
  }
}

void DeviceLeases::ExpireDue() {
  for (auto& [key, device] : state_->directory.devices()) {
    if (!device.lease.held()) continue;
    AttachedWorker* const holder = state_->directory.Find(device.lease.holder());
    const absl::Duration predicted =
        holder == nullptr ? absl::ZeroDuration() : holder->pulse.step_predicted;
    const absl::Duration limit =
        state_->options.lease_max + 2 * predicted + state_->options.lease_grace;
    const Role role = device.lease.holder_role();
    if (!device.lease.Expire(limit, state_->now)) continue;
    CountOutcome(role, LeaseOutcome::kExpired);
    if (holder != nullptr) RestartQueueTimers(*state_, holder);
  }
}

void DeviceLeases::GrantFree() {
  for (auto& [key, device] : state_->directory.devices()) {
    if (device.lease.held()) {
      ShortenOn(&device);
    } else {
      GrantOn(&device);
    }
  }
}

LeaseSnapshot DeviceLeases::SnapshotOf(const Device& device) {
  members_.clear();
  int pair = 0;
  for (const StreamId stream : device.members) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    pair = worker.pair;
    const int32_t ready = worker.nothing_ready ? 0 : worker.ready;
    members_.push_back({.worker = stream,
                        .role = worker.role,
                        .ready = ready,
                        .last_lease = worker.last_lease,
                        .oldest = worker.oldest_ready,
                        .serve_by = worker.serve_by,
                        .step = PredictStep(*state_, worker, ready, ready)});
  }
  return {.now = state_->now,
          .members = members_,
          .policy = PolicyOf(*state_, pair),
          .max = state_->options.lease_max,
          .cut_off = device.lease.cut_off()};
}

void DeviceLeases::GrantOn(Device* device) {
  const LeaseSnapshot snapshot = SnapshotOf(*device);
  const auto decision = DecideLease(snapshot);
  if (!decision) return;
  AttachedWorker* const worker = state_->directory.Find(decision->worker);
  if (state_->directory.NeedsLease(*worker)) {
    ++state_->counters.deferrals[Index(worker->role)][Index(decision->outcome)];
  }
  const int64_t max_ms = absl::ToInt64Milliseconds(decision->max);
  device->lease.Grant(worker->stream, worker->role, ++last_lease_, absl::Milliseconds(max_ms),
                      state_->now);
  worker->last_lease = last_lease_;
  worker->told_since_grant = false;
  worker->granted_at = state_->now;
  SendLease(*worker, max_ms, decision->yield_at_handoffs);
}

void DeviceLeases::ShortenOn(Device* device) {
  const LeaseSnapshot snapshot = SnapshotOf(*device);
  const auto holder = std::find_if(members_.begin(), members_.end(), [device](const auto& member) {
    return member.worker == device->lease.holder();
  });
  if (holder == members_.end()) return;
  const absl::Duration left =
      std::max(kShortestLease, LeaseNeeded(snapshot, *holder) - state_->now);
  if (state_->now + left + kShortestLease > device->lease.ends()) return;
  const int64_t max_ms = absl::ToInt64Milliseconds(left);
  device->lease.Shorten(state_->now + absl::Milliseconds(max_ms));
  SendLease(*state_->directory.Find(holder->worker), max_ms, /*yield_at_handoffs=*/0);
}

void DeviceLeases::SendLease(const AttachedWorker& worker, int64_t max_ms,
                             int32_t yield_at_handoffs) {
  wire::Lease* const lease = state_->outbox.workers.Get(worker.stream).mutable_lease();
  lease->set_lease_id(worker.last_lease);
  lease->set_max_ms(static_cast<int32_t>(max_ms));
  lease->set_yield_at_handoffs(yield_at_handoffs);
}

}  // namespace tokenrouter
