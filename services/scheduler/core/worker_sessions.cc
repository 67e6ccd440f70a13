#include "services/scheduler/core/worker_sessions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libs/routing/wire_types.h"
#include "libs/tokens/protocol_version.h"

namespace tokenrouter {

std::optional<int> WorkerSessions::OnHello(StreamId stream, const wire::WorkerHello& hello) {
  // The same process reconnected, so its old stream is dead even if its end was not noticed yet.
  if (const AttachedWorker* const old = state_->directory.FindById(hello.worker_id())) {
    const StreamId old_stream = old->stream;
    OnGone(old_stream, state_->options.reattach_grace);
    state_->output->CloseWorker(old_stream, absl::AbortedError("replaced by a newer stream"));
  }
  if (const absl::Status judged = state_->directory.Judge(hello); !judged.ok()) {
    state_->output->CloseWorker(stream, judged);
    return std::nullopt;
  }
  const int index = state_->directory.PairOf(hello.pair());
  const int32_t usable_ids = state_->directory.pair(index).usable_ids;
  const std::vector<int32_t> stop_ids = state_->directory.pair(index).stop_ids;
  AttachedWorker* const worker = state_->directory.Add(stream, hello, state_->now);
  const Pair& pair = state_->directory.pair(index);
  state_->pools_seen.emplace(index, state_->directory.Find(stream)->role);
  Learn(hello, index);
  FillAttached(stream, pair);
  // What Attached said holds for the whole stream, so peers that were sent other values attach
  // again. It happens when the first worker of a role joins with other ids than its pair's.
  if (usable_ids != 0 && (usable_ids != pair.usable_ids || stop_ids != pair.stop_ids)) {
    ClosePeers(stream, pair);
  }
  loss_->Returned(worker);
  placement_->RetryWaiting(index);
  return index;
}

void WorkerSessions::ClosePeers(StreamId newcomer, const Pair& pair) {
  std::vector<StreamId> peers;
  for (const auto& pool : pair.workers) peers.insert(peers.end(), pool.begin(), pool.end());
  for (const StreamId peer : peers) {
    if (peer == newcomer) continue;
    const AttachedWorker& worker = *state_->directory.Find(peer);
    state_->pools_seen.erase({worker.pair, worker.role});  // It comes back.
    OnGone(peer, state_->options.reattach_grace);
    state_->output->CloseWorker(
        peer, absl::AbortedError("the pair's usable ids or stop ids changed; attach again"));
  }
}

void WorkerSessions::FillAttached(StreamId stream, const Pair& pair) {
  wire::Attached* const attached = state_->outbox.workers.Get(stream).mutable_attached();
  attached->set_protocol_version(kProtocolVersion);
  attached->set_usable_ids(pair.usable_ids);
  attached->clear_stop_ids();
  attached->mutable_stop_ids()->Add(pair.stop_ids.begin(), pair.stop_ids.end());
  attached->set_background_prefill(state_->options.large_prefill == LargePrefill::kEager &&
                                   state_->directory.Find(stream)->role == Role::kLarge);
  attached->set_heartbeat_ms(
      static_cast<int32_t>(absl::ToInt64Milliseconds(state_->options.heartbeat)));
  attached->set_keep_unclaimed_ms(
      static_cast<int32_t>(absl::ToInt64Milliseconds(state_->options.keep_unclaimed)));
}

void WorkerSessions::UpdateTopology(int pair) {
  const bool shared = state_->directory.SharesDevice(pair);
  const absl::Duration longest_lease =
      shared ? state_->options.lease_max : absl::InfiniteDuration();
  state_->ModelOf(pair).mutable_seen().SetTopology(
      shared, std::min(state_->directory.MaxStep(pair), longest_lease));
}

void WorkerSessions::Learn(const wire::WorkerHello& hello, int pair) {
  PairObservations& seen = state_->ModelOf(pair).mutable_seen();
  UpdateTopology(pair);
  const Role role = CheckedRole(hello.role());
  // One worker's samples add nothing once others have served.
  if (seen.curve(role).observations() > hello.samples_size()) return;
  for (const wire::StepSample& sample : hello.samples()) {
    seen.ObserveStep(role, sample.rows(), sample.new_ids(),
                     absl::Microseconds(sample.elapsed_us()));
  }
}

void WorkerSessions::Observe(AttachedWorker* worker, const wire::WorkerFrame& frame) {
  worker->pulse.heard_at = state_->now;
  if (frame.has_step()) {
    worker->pulse.step_elapsed = absl::ZeroDuration();
    worker->pulse.loop_elapsed = absl::ZeroDuration();
    worker->pulse.step_predicted = absl::Microseconds(frame.step().predicted_us());
    worker->free_blocks = frame.step().free_blocks();
    ++worker->steps;
    state_->ModelOf(worker->pair)
        .mutable_seen()
        .ObserveStep(worker->role, frame.step().rows(), frame.step().new_ids(),
                     absl::Microseconds(frame.step().elapsed_us()));
  }
  if (frame.has_heartbeat()) {
    worker->pulse.step_elapsed = absl::Microseconds(frame.heartbeat().step_elapsed_us());
    worker->pulse.step_predicted = absl::Microseconds(frame.heartbeat().step_predicted_us());
    worker->pulse.loop_elapsed = absl::Microseconds(frame.heartbeat().loop_elapsed_us());
    worker->free_blocks = frame.heartbeat().free_blocks();
    worker->steps = std::max(worker->steps, frame.heartbeat().steps());
    worker->nothing_ready = false;  // Asked again once per heartbeat, in case a message was lost.
  }
}

void WorkerSessions::OnFrame(StreamId stream, const wire::WorkerFrame& frame) {
  AttachedWorker* const worker = state_->directory.Find(stream);
  if (worker == nullptr) return;
  Observe(worker, frame);
  if (frame.draining()) worker->draining = true;
  if (frame.has_step()) steps_->Ended(worker, frame.step());
  for (const wire::RowReport& row : frame.rows()) rows_->OnRow(worker, row);
  for (const wire::NeedIds& need : frame.need_ids()) rows_->OnNeedIds(worker, need);
  for (const uint64_t closed : frame.closed()) rows_->OnClosed(worker, closed);
  if (frame.has_lease_return()) leases_->OnReturn(worker, frame.lease_return());
  if (frame.closed_size() > 0) placement_->RetryWaiting(worker->pair);
}

std::optional<int> WorkerSessions::OnGone(StreamId stream, absl::Duration grace) {
  AttachedWorker* const worker = state_->directory.Find(stream);
  if (worker == nullptr) return std::nullopt;
  const int pair = worker->pair;
  leases_->OnGone(*worker);
  steps_->Gone(*worker);
  loss_->Leaves(worker, grace);
  state_->directory.Remove(stream, state_->now);
  UpdateTopology(pair);
  state_->releasable_workers.erase(stream);
  state_->outbox.workers.Forget(stream);
  return pair;
}

std::vector<std::pair<StreamId, absl::Status>> WorkerSessions::Dead() const {
  std::vector<std::pair<StreamId, absl::Status>> dead;
  for (const auto& [stream, worker] : state_->directory.workers()) {
    const WorkerHealth health = JudgeWorker(worker->pulse, state_->options, state_->now);
    if (health == WorkerHealth::kAlive) continue;
    dead.emplace_back(
        stream, absl::UnavailableError(absl::StrCat("worker ", worker->hello.worker_id(),
                                                    Describe(health, worker->pulse, state_->now))));
  }
  return dead;
}

absl::Status WorkerSessions::Drain(const std::string& worker_id) {
  AttachedWorker* const worker = state_->directory.FindById(worker_id);
  if (worker == nullptr) return absl::NotFoundError(absl::StrCat("no worker ", worker_id));
  worker->draining = true;
  state_->outbox.workers.Get(worker->stream).set_drain(true);
  return absl::OkStatus();
}

void WorkerSessions::CloseAll(const absl::Status& why) {
  for (const StreamId stream : state_->directory.Streams()) {
    leases_->OnGone(*state_->directory.Find(stream));
    state_->directory.Remove(stream, state_->now);
    state_->outbox.workers.Forget(stream);
    state_->output->CloseWorker(stream, why);
  }
  state_->lost_workers.Clear();
  state_->releasable_workers.clear();
  state_->may_start.clear();
  state_->suspect_done.clear();
  state_->large_steps_changed.clear();
}

}  // namespace tokenrouter
