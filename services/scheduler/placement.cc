#include "services/scheduler/placement.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "services/scheduler/admission.h"
#include "services/scheduler/worker_choice.h"

namespace tokenrouter {
namespace {

WorkerCandidate CandidateOf(const AttachedWorker& worker, const RequestMachine& request,
                            const RequestMachine::Side& side) {
  WorkerCandidate candidate;
  candidate.stream = worker.stream;
  candidate.open_for_new = !worker.draining && !worker.closing.contains(request.origin().key);
  candidate.same_class = side.numerics_class == 0 || side.numerics_class == worker.numerics_class;
  if (!worker.held.empty()) {
    const auto held = worker.held.find({request.spec().request_id(), request.spec().choice()});
    if (held != worker.held.end()) candidate.held = held->second;
  }
  candidate.sequences = worker.sequences();
  candidate.max_sequences = worker.hello.max_sequences();
  candidate.free_blocks = worker.free_blocks;
  return candidate;
}

}  // namespace

void Placement::Forward(RequestMachine* request) {
  const Role role = request->pen().role;
  if (request->HoldsDeparture()) {
    request->SetPhase(Phase::kHeld, state_->now);
    StartStall(state_, request);
  } else if (request->side(role).worker != 0) {
    Extend(request);
  } else if (!TryOpen(request)) {
    Wait(request);
  }
}

void Placement::Extend(RequestMachine* request) {
  const Role role = request->pen().role;
  AttachedWorker* const worker = state_->directory.Find(request->side(role).worker);
  TR_CHECK(worker != nullptr) << request->origin().key;
  v1::CommandFrame& frame = state_->outbox.workers.Get(worker->stream);
  v1::Extend* const extend = frame.add_extends();
  request->FillExtend(role, extend);
  const int64_t unseen_ids = extend->ids_size();
  if (const auto until = request->RaiseCredit(role, /*with_pen=*/true)) {
    v1::Credit* const credit = frame.add_credits();
    credit->set_request(request->origin().key);
    credit->set_until(*until);
  }
  TurnGiven(request, worker, unseen_ids);
}

bool Placement::TryOpen(RequestMachine* request) {
  const Role role = request->pen().role;
  const Pair& pair = state_->directory.pair(request->origin().pair);
  std::vector<WorkerCandidate> candidates;
  for (const StreamId stream : pair.workers[static_cast<int>(role)]) {
    candidates.push_back(
        CandidateOf(*state_->directory.Find(stream), *request, request->side(role)));
  }
  const auto chosen = ChooseWorker(candidates);
  if (!chosen) return false;
  // Admission could not check it if no worker had told the pair's limits yet.
  if (const auto refusal = JudgeContext(request->spec(), pair); refusal && !request->placed()) {
    conclusion_->Reject(request, refusal->reason, refusal->code, refusal->message);
    return true;
  }
  Forget(request);
  OpenOn(request, role, state_->directory.Find(candidates[*chosen].stream));
  return true;
}

void Placement::OpenOn(RequestMachine* request, Role role, AttachedWorker* worker) {
  if (request->side(role).epoch > 0) {
    ++state_->counters.reopened[Index(role)][Index(request->side(role).lost_by)];
  }
  request->FillOpen(role, worker->stream, worker->numerics_class,
                    state_->outbox.workers.Get(worker->stream).add_opens());
  worker->open.insert(request->origin().key);
  if (request->pen().role == role) TurnGiven(request, worker, request->history().size());
}

void Placement::TurnGiven(RequestMachine* request, AttachedWorker* worker, int64_t unseen_ids) {
  NoteCommand(worker);
  if (worker->role == Role::kSmall) {
    request->SetPhase(Phase::kRunning, state_->now);
    CountReady(state_, request, worker);
    return;
  }
  CountIdle(state_, request);
  request->SetPhase(Phase::kReleasable, state_->now);
  worker->releasable[request->origin().key] = {state_->now, unseen_ids};
  state_->releasable_workers.insert(worker->stream);
}

void Placement::Reopen(RequestMachine* request, Role role) {
  AttachedWorker* const worker = state_->directory.Find(request->side(role).worker);
  TR_CHECK(worker != nullptr) << request->origin().key;
  request->LoseSide(role, ReopenCause::kDiverged);
  OpenOn(request, role, worker);
}

bool Placement::PoolEmpty(int pair, Role role) const {
  return state_->directory.pair(pair).workers[static_cast<int>(role)].empty();
}

bool Placement::AnyRoom(int pair, Role role) const {
  for (const StreamId stream : state_->directory.pair(pair).workers[static_cast<int>(role)]) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    const int32_t limit = worker.hello.max_sequences();
    if (!worker.draining && (limit == 0 || worker.sequences() < limit)) return true;
  }
  return false;
}

absl::Time Placement::WaitEnd(const RequestMachine& request) const {
  const Role role = request.pen().role;
  const int pair = request.origin().pair;
  const absl::Time queued = request.phase_since();
  const absl::Time seat = queued + state_->options.queue_wait;
  if (!PoolEmpty(pair, role)) return seat;
  // The time that it queued for a full worker is not held against it, but a pool that comes and
  // goes does not make it wait for ever.
  const absl::Time empty = state_->directory.pair(pair).empty_since[Index(role)];
  const absl::Duration wait =
      role == Role::kSmall ? state_->options.small_wait : state_->options.large_wait;
  return std::min(std::max(queued, empty), seat) + wait;
}

void Placement::Wait(RequestMachine* request) {
  const Role role = request->pen().role;
  const int pair = request->origin().pair;
  const bool large_gone = role == Role::kLarge && PoolEmpty(pair, role);
  if (large_gone && state_->options.large_pool_gone == LargePoolGone::kSmallOnly) {
    Forget(request);
    request->FallBackToSmall();
    Forward(request);
    return;
  }
  if (large_gone && state_->options.large_pool_gone == LargePoolGone::kFail) {
    conclusion_->Reject(request, RejectReason::kLargePoolGone, absl::StatusCode::kUnavailable,
                        absl::StrCat("pair ", request->spec().pair(),
                                     " has no large worker and its policy is to fail"));
    return;
  }
  request->SetPhase(Phase::kWaiting, state_->now);
  request->WaitUntil(WaitEnd(*request));
  state_->timers.Arm({request->wait_until(), request->origin().key, Timer::Kind::kWait});
  if (waiting_[{pair, role}].insert(request->origin().key).second && !request->placed()) {
    ++newcomers_;
  }
  if (role == Role::kLarge) MakeRoom(pair);
}

void Placement::Forget(RequestMachine* request) {
  const auto pool = waiting_.find({request->origin().pair, request->pen().role});
  if (pool == waiting_.end() || pool->second.erase(request->origin().key) == 0) return;
  if (!request->placed()) --newcomers_;
}

void Placement::Clear() {
  waiting_.clear();
  newcomers_ = 0;
}

void Placement::RetryWaiting(int pair) {
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    const auto pool = waiting_.find({pair, role});
    if (pool == waiting_.end()) continue;
    // Forwarding changes the set, so each step looks for the next one: a frame that frees one seat
    // costs one request, however many wait.
    uint64_t key = 0;
    for (auto next = pool->second.begin(); next != pool->second.end() && AnyRoom(pair, role);
         next = pool->second.upper_bound(key)) {
      key = *next;
      RequestMachine* const request = state_->requests.Find(key);
      if (request != nullptr && request->phase() == Phase::kWaiting) Forward(request);
    }
  }
  MakeRoom(pair);
}

void Placement::JudgeWaiting(int pair, Role role) {
  const auto pool = waiting_.find({pair, role});
  if (pool == waiting_.end()) return;
  const std::vector<uint64_t> keys(pool->second.begin(), pool->second.end());
  for (const uint64_t key : keys) {
    if (RequestMachine* const request = state_->requests.Find(key)) Forward(request);
  }
}

void Placement::MakeRoom(int pair) {
  const auto pool = waiting_.find({pair, Role::kLarge});
  if (pool == waiting_.end() || pool->second.empty()) return;
  size_t closing = 0;
  for (const StreamId stream : state_->directory.pair(pair).workers[Index(Role::kLarge)]) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    if (!worker.draining) closing += worker.closing.size();
  }
  for (; closing < pool->second.size(); ++closing) {
    if (AnyRoom(pair, Role::kLarge) || !EvictOne(pair)) return;
  }
}

bool Placement::EvictOne(int pair) {
  std::vector<EvictionCandidate> candidates;
  for (const StreamId stream : state_->directory.pair(pair).workers[Index(Role::kLarge)]) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    if (worker.draining) continue;  // A seat there is of no use.
    for (const uint64_t key : worker.open) {
      const RequestMachine* const request = state_->requests.Find(key);
      if (request->pen().role == Role::kLarge) continue;
      candidates.push_back({key, request->side(Role::kLarge).known});
    }
  }
  const auto victim = ChooseVictim(candidates);
  if (!victim) return false;
  CloseSide(state_, state_->requests.Find(candidates[*victim].request), Role::kLarge,
            ReopenCause::kEvicted);
  return true;
}

void Placement::WaitTimer(RequestMachine* request) {
  if (request->phase() != Phase::kWaiting) return;
  // The cause of the wait may have changed since the timer was set.
  const absl::Time until = WaitEnd(*request);
  if (state_->now < until) {
    if (until != request->wait_until()) {
      request->WaitUntil(until);
      state_->timers.Arm({until, request->origin().key, Timer::Kind::kWait});
    }
    return;
  }
  const Role role = request->pen().role;
  RejectReason reason = RejectReason::kQueueTimeout;
  absl::StatusCode code = absl::StatusCode::kResourceExhausted;
  if (PoolEmpty(request->origin().pair, role)) {
    reason = role == Role::kSmall ? RejectReason::kNoSmallWorker : RejectReason::kLargePoolGone;
    code = absl::StatusCode::kUnavailable;
  }
  const std::string waited = absl::FormatDuration(state_->now - request->phase_since());
  conclusion_->Reject(request, reason, code,
                      absl::StrCat("waited ", waited, " for a ", RoleName(role), " worker of pair ",
                                   request->spec().pair(), " with room"));
}

}  // namespace tokenrouter
