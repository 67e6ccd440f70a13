#include "services/scheduler/placement/worker_loss.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tokenrouter {

void WorkerLoss::Leaves(AttachedWorker* worker) {
  LostWorker lost = {.stream = worker->stream,
                     .worker_id = worker->hello.worker_id(),
                     .role = worker->role,
                     .pair = worker->pair,
                     .judged_at = state_->now,
                     .requests = {worker->open.begin(), worker->open.end()}};
  for (const uint64_t key : lost.requests) {
    RequestMachine* const request = state_->requests.Find(key);
    const bool wrote =
        request->grant().role == worker->role &&
        (request->phase() == Phase::kRunning || request->phase() == Phase::kReleasable);
    if (request->counted_on() == worker->stream) CountIdle(state_, request);
    request->LoseSide(worker->role, ReopenCause::kWorkerLost);
    request->Await(worker->role, worker->stream);
    if (!wrote) continue;
    request->SetPhase(Phase::kWaiting, state_->now);
    request->WaitUntil(lost.judged_at);
  }
  state_->lost_workers.Add(std::move(lost));
}

void WorkerLoss::Judge() {
  const std::vector<LostWorker> lost = state_->lost_workers.TakeDue(state_->now);
  if (lost.empty()) return;
  for (const uint64_t key : Stranded(lost)) {
    // Placing one may have ended another.
    RequestMachine* const request = state_->requests.Find(key);
    if (request != nullptr) GoOn(request);
  }
  for (const LostWorker& worker : lost) {
    if (state_->directory.pair(worker.pair).workers[Index(worker.role)].empty()) {
      placement_->JudgeWaiting(worker.pair, worker.role);
    }
  }
}

std::vector<uint64_t> WorkerLoss::Stranded(const std::vector<LostWorker>& lost) {
  std::vector<uint64_t> stranded;
  for (const LostWorker& worker : lost) {
    for (const uint64_t key : worker.requests) {
      RequestMachine* const request = state_->requests.Find(key);
      if (request == nullptr || request->side(worker.role).awaited != worker.stream) continue;
      request->Await(worker.role, 0);
      const bool waits = request->phase() == Phase::kWaiting;
      if (waits && request->grant().role == worker.role) stranded.push_back(key);
    }
  }
  return stranded;
}

void WorkerLoss::GoOn(RequestMachine* request) {
  request->CountReopen();
  if (request->reopens() <= state_->options.max_reopens) {
    placement_->DispatchGrant(request);
    return;
  }
  finisher_->Reject(request, RejectReason::kReopenLimit, absl::StatusCode::kUnavailable,
                    absl::StrCat("lost ", request->reopens(),
                                 " workers in a row without a single token in between"));
}

}  // namespace tokenrouter
