#include "services/scheduler/placement/worker_loss.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokenrouter {

void WorkerLoss::Leaves(AttachedWorker* worker, absl::Duration grace) {
  LostWorker lost = {.stream = worker->stream,
                     .worker_id = worker->hello.worker_id(),
                     .role = worker->role,
                     .pair = worker->pair,
                     .judged_at = state_->now + grace,
                     .requests = {}};
  for (const uint64_t key : worker->open) {
    RequestMachine* const request = state_->requests.Find(key);
    const bool wrote =
        request->grant().role == worker->role &&
        (request->phase() == Phase::kRunning || request->phase() == Phase::kReleasable);
    const bool counted = request->service().ready.worker == worker->stream;
    // While it knows of no row that it may run, a worker prefills those that wait for their
    // release in the background; whether its last step began so is not known here.
    const bool ran = counted || worker->suspect == key || worker->releasable.contains(key);
    lost.requests.push_back({key, ran});
    if (counted) CountIdle(state_, request);
    request->mutable_side(worker->role).Lose(ReopenCause::kWorkerLost);
    request->mutable_side(worker->role).awaited = worker->stream;
    if (!wrote) continue;
    request->SetPhase(Phase::kWaiting, state_->now);
    request->mutable_service().wait_until = lost.judged_at;
  }
  state_->lost_workers.Add(std::move(lost));
}

void WorkerLoss::Returned(AttachedWorker* worker) {
  std::optional<LostWorker> lost = state_->lost_workers.Take(worker->hello.worker_id());
  if (!lost) return;
  if (lost->role != worker->role || lost->pair != worker->pair) {
    lost->judged_at = state_->now;  // No worker comes back as another one.
    return state_->lost_workers.Add(*std::move(lost));
  }
  std::vector<uint64_t> elsewhere;
  for (const auto& [key, ran] : lost->requests) {
    RequestMachine* const request = state_->requests.Find(key);
    if (request == nullptr || request->side(lost->role).awaited != lost->stream) continue;
    request->mutable_side(lost->role).awaited = 0;
    const bool granted = request->grant().role == lost->role;
    const bool kept =
        worker->has_free_slot() &&
        worker->held.contains({request->spec().request_id(), request->spec().choice()});
    if (granted && request->phase() == Phase::kWaiting) {
      if (kept) {
        GoOn(request, worker);
      } else {
        elsewhere.push_back(key);
      }
    } else if (kept && !granted) {
      placement_->ReopenOn(request, worker);
    }
  }
  for (const uint64_t key : elsewhere) {
    if (RequestMachine* const request = state_->requests.Find(key)) GoOn(request, nullptr);
  }
}

void WorkerLoss::Judge() {
  const std::vector<LostWorker> lost = state_->lost_workers.TakeDue(state_->now);
  if (lost.empty()) return;
  for (const uint64_t key : Stranded(lost)) {
    // Placing one may have ended another.
    RequestMachine* const request = state_->requests.Find(key);
    if (request != nullptr) GoOn(request, nullptr);
  }
  for (const LostWorker& worker : lost) {
    const auto& pool = state_->directory.pair(worker.pair).workers[Index(worker.role)];
    if (pool.empty() && !state_->lost_workers.MayReturn(worker.pair, worker.role)) {
      placement_->JudgeWaiting(worker.pair, worker.role);
    }
  }
}

std::vector<uint64_t> WorkerLoss::Stranded(const std::vector<LostWorker>& lost) {
  std::vector<uint64_t> stranded;
  for (const LostWorker& worker : lost) {
    for (const auto& [key, ran] : worker.requests) {
      RequestMachine* const request = state_->requests.Find(key);
      if (request == nullptr || request->side(worker.role).awaited != worker.stream) continue;
      request->mutable_side(worker.role).awaited = 0;
      if (ran) request->mutable_side(worker.role).Suspect(worker.worker_id);
      const bool waits = request->phase() == Phase::kWaiting;
      if (waits && request->grant().role == worker.role) stranded.push_back(key);
    }
  }
  return stranded;
}

void WorkerLoss::GoOn(RequestMachine* request, AttachedWorker* back) {
  const int losses = request->side(request->grant().role).losses();
  if (losses >= state_->options.max_worker_losses) {
    finisher_->Reject(request, RejectReason::kCrashSuspect, absl::StatusCode::kInternal,
                      absl::StrCat("ran on ", losses, " ", RoleName(request->grant().role),
                                   " workers in a row that were lost; it may be what they die of"));
    return;
  }
  ++request->mutable_service().reopens;
  if (request->service().reopens <= state_->options.max_reopens) {
    if (back == nullptr) return placement_->DispatchGrant(request);
    return placement_->ReopenOn(request, back);
  }
  finisher_->Reject(request, RejectReason::kReopenLimit, absl::StatusCode::kUnavailable,
                    absl::StrCat("lost ", request->service().reopens,
                                 " workers in a row without a single token in between"));
}

}  // namespace tokenrouter
