#include "services/scheduler/dispatch/releaser.h"

#include <algorithm>
#include <iterator>

namespace tokenrouter {

void Releaser::ReleaseRows() {
  for (auto it = state_->releasable_workers.begin(); it != state_->releasable_workers.end();) {
    AttachedWorker* const worker = state_->directory.Find(*it);
    if (worker != nullptr && !worker->releasable.empty()) Decide(worker);
    const bool done = worker == nullptr || worker->releasable.empty();
    it = done ? state_->releasable_workers.erase(it) : std::next(it);
  }
}

absl::Time Releaser::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const StreamId stream : state_->releasable_workers) {
    const AttachedWorker* const worker = state_->directory.Find(stream);
    if (worker != nullptr) next = std::min(next, worker->release_at);
  }
  return next;
}

void Releaser::Decide(AttachedWorker* worker) {
  // On a shared device the lease decides, and counts its own outcomes.
  if (state_->directory.NeedsLease(*worker)) return Release(worker);
  const ReleaseDecision decision = Judge(*worker);
  worker->release_at = decision.until;
  if (!decision.release) return;
  ++state_->counters.deferrals[Index(Role::kLarge)][Index(decision.outcome)];
  Release(worker);
}

ReleaseDecision Releaser::Judge(const AttachedWorker& worker) {
  const BatchingPolicy policy = PolicyOf(*state_, worker.pair);
  if (!MayWait(policy)) return {.release = true};
  const PairObservations& seen = state_->ModelOf(worker.pair).seen();
  const ReleaseRule rule = {.policy = policy,
                            .small = &seen.curve(Role::kSmall),
                            .large = &seen.curve(Role::kLarge),
                            .routed = seen.routed().mean(),
                            .routed_lower = seen.routed().Lower(),
                            .returned = seen.returned().mean(),
                            .handoff_latency = seen.handoff_latency()};
  rows_.clear();
  for (const auto& [key, row] : worker.releasable) {
    const RequestMachine& request = *state_->requests.Find(key);
    rows_.push_back({.request = key,
                     .since = row.since,
                     .uncomputed_ids = row.unseen_ids,
                     .bound = BoundOf(request, row.since, state_->options.defer_cap)});
  }
  steps_.clear();
  int32_t busy_small = 0;
  for (const StreamId stream : state_->directory.pair(worker.pair).workers[Index(Role::kSmall)]) {
    const AttachedWorker& small = *state_->directory.Find(stream);
    busy_small += small.ready;
    if (small.step.running()) steps_.push_back(small.step);
  }
  return DecideRelease({.now = state_->now,
                        .waiting = rows_,
                        .own = worker.step,
                        .background_ids = worker.background_ids,
                        .small = steps_,
                        .busy_small = busy_small},
                       rule);
}

void Releaser::Release(AttachedWorker* worker) {
  for (const auto& [key, row] : worker->releasable) {
    RequestMachine* const request = state_->requests.Find(key);
    request->SetPhase(Phase::kRunning, state_->now);
    CountReady(state_, request, worker);
    state_->outbox.workers.Get(worker->stream).add_releases(key);
  }
  worker->releasable.clear();
  worker->release_at = absl::InfiniteFuture();
}

}  // namespace tokenrouter
