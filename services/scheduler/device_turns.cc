#include "services/scheduler/device_turns.h"

namespace tokenrouter {

void DeviceTurns::CountOutcome(Role role, LeaseOutcome outcome) {
  ++state_->counters.lease_turns[Index(role)][Index(outcome)];
}

void DeviceTurns::OnReturn(AttachedWorker* worker, const v1::LeaseReturn& lease) {
  Device* const device = state_->directory.DeviceOf(*worker);
  if (device == nullptr || !device->lease.Return(worker->stream, lease.turn(), lease.ready() > 0,
                                                 state_->options.lease_max, state_->now)) {
    return;
  }
  CountOutcome(worker->role, LeaseOutcome::kReturned);
  // It can run nothing of what we count as ready (its memory is full, say): granting again at once
  // would only spin. A command that was under way when it said so speaks against that.
  worker->nothing_ready = lease.ready() == 0 && !worker->told_since_grant;
}

void DeviceTurns::OnGone(const AttachedWorker& worker) {
  Device* const device = state_->directory.DeviceOf(worker);
  if (device != nullptr && device->lease.Drop(worker.stream)) {
    CountOutcome(worker.role, LeaseOutcome::kHolderLost);
  }
}

void DeviceTurns::ExpireDue() {
  for (auto& [key, device] : state_->directory.devices()) {
    if (!device.lease.held()) continue;
    const AttachedWorker* const holder = state_->directory.Find(device.lease.holder());
    const absl::Duration predicted =
        holder == nullptr ? absl::ZeroDuration() : holder->pulse.step_predicted;
    const absl::Duration limit =
        state_->options.lease_max + 2 * predicted + state_->options.lease_grace;
    const Role role = device.lease.holder_role();
    if (device.lease.Expire(limit, state_->now)) CountOutcome(role, LeaseOutcome::kExpired);
  }
}

void DeviceTurns::GrantFree() {
  for (auto& [key, device] : state_->directory.devices()) {
    if (!device.lease.held()) GrantOn(&device);
  }
}

void DeviceTurns::GrantOn(Device* device) {
  members_.clear();
  int pair = 0;
  for (const StreamId stream : device->members) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    pair = worker.pair;
    members_.push_back(
        {stream, worker.role, worker.nothing_ready ? 0 : worker.ready, worker.last_turn});
  }
  const TurnSnapshot snapshot{
      .members = members_,
      .threshold = SharedThreshold(state_->options, state_->requests.live(pair)),
      .cut_off = device->lease.cut_off()};
  const auto decision = DecideTurn(snapshot);
  if (!decision) return;
  AttachedWorker* const worker = state_->directory.Find(decision->worker);
  device->lease.Grant(worker->stream, worker->role, ++last_turn_, state_->now);
  worker->last_turn = last_turn_;
  worker->told_since_grant = false;
  v1::Lease* const lease = state_->outbox.workers.Get(worker->stream).mutable_lease();
  lease->set_turn(last_turn_);
  lease->set_max_ms(static_cast<int32_t>(absl::ToInt64Milliseconds(state_->options.lease_max)));
  lease->set_yield_at_departures(decision->yield_at_departures);
}

}  // namespace tokenrouter
