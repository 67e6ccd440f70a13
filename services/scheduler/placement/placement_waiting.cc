// The part of Placement that lets requests wait for a worker, and ends their wait.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/scheduler/placement/placement.h"

namespace tokenrouter {

void Placement::Wait(RequestMachine* request) {
  if (request->grant().own) {
    // Large-only service was the scheduler's choice, so routed service can go on at once.
    request->SetGrant(OwnGrant(request->grant()));
    DispatchGrant(request);
    return;
  }
  const Role role = request->grant().role;
  const int pair = request->origin().pair;
  const bool large_gone = role == Role::kLarge && LargePoolGivenUp(pair);
  if (large_gone && state_->options.large_pool_gone == LargePoolGone::kSmallOnly) {
    Forget(request);
    request->FallBackToSmall();
    DispatchGrant(request);
    return;
  }
  if (large_gone && state_->options.large_pool_gone == LargePoolGone::kFail) {
    finisher_->Reject(request, RejectReason::kLargePoolGone, absl::StatusCode::kUnavailable,
                      absl::StrCat("pair ", request->spec().pair(),
                                   " has no large worker; start one, or set --large_pool_gone to "
                                   "wait or small_only"));
    return;
  }
  request->SetPhase(Phase::kWaiting, state_->now);
  request->mutable_service().wait_until = WaitEnd(*request);
  state_->timers.Arm({request->service().wait_until, request->origin().key, Timer::Kind::kWait});
  if (MustWaitAlone(*request)) {
    LeaveLines(request);
    suspects_[{pair, role}].Add(request->origin().key, absl::InfinitePast());
    return;
  }
  const absl::Time rank = role == Role::kLarge ? request->phase().since() : absl::InfinitePast();
  if (waiting_[{pair, role}].Add(request->origin().key, rank)) {
    state_->newcomers.Add(pair, request->service().placed ? 0 : 1);
    state_->large_kv_waiting[pair] += role == Role::kLarge ? 1 : 0;
  }
  if (role == Role::kLarge) AdmitToLargeKv(pair);
}

void Placement::AwaitJudgement(RequestMachine* request) {
  Forget(request);
  request->SetPhase(Phase::kWaiting, state_->now);
  const StreamId lost = request->side(request->grant().role).awaited;
  request->mutable_service().wait_until = state_->lost_workers.JudgedAt(lost);
}

absl::Time Placement::WaitEnd(const RequestMachine& request) const {
  const Role role = request.grant().role;
  const int pair = request.origin().pair;
  absl::Time queued = request.phase().since();
  if (request.side(role).losses() > 0 && !PoolEmpty(pair, role)) {
    queued += state_->options.suspect_wait;
    if (IsolationHolds(request, role)) return queued;
  }
  if (role == Role::kLarge && request.service().placed && !PoolEmpty(pair, role)) {
    return queued + state_->options.large_kv_timeout;
  }
  const absl::Time slot = queued + state_->options.admission_timeout;
  if (!PoolEmpty(pair, role)) return slot;
  // The time in the queue of a full pool does not count against it, but a pool that comes and goes
  // must not make it wait without end.
  const absl::Time empty = state_->directory.pair(pair).empty_since[Index(role)];
  const CoreOptions& options = state_->options;
  absl::Duration wait = options.no_small_worker_timeout;
  if (role == Role::kLarge) {
    const bool waits = options.large_pool_gone == LargePoolGone::kWait;
    wait = waits ? options.no_large_worker_timeout : absl::ZeroDuration();
  }
  // After a restart, or after a stream broke, the pool's workers may only be on their way back.
  return std::max({std::min(std::max(queued, empty), slot) + wait, state_->KnownFrom(pair, role),
                   state_->lost_workers.MayReturnUntil(pair, role)});
}

void Placement::WaitTimer(RequestMachine* request) {
  if (request->phase() != Phase::kWaiting) return;
  if (request->side(request->grant().role).awaited != 0) return;
  const Pool pool = {request->origin().pair, request->grant().role};
  if (!IsolationHolds(*request, pool.second) && suspects_[pool].Remove(request->origin().key)) {
    return DispatchGrant(request);
  }
  // The cause of the wait may have changed since the timer was set.
  const absl::Time until = WaitEnd(*request);
  if (state_->now < until) {
    if (until != request->service().wait_until) {
      request->mutable_service().wait_until = until;
      state_->timers.Arm({until, request->origin().key, Timer::Kind::kWait});
    }
    return;
  }
  const Role role = request->grant().role;
  if (role == Role::kLarge && LargePoolGivenUp(request->origin().pair)) return Wait(request);
  RejectReason reason = RejectReason::kQueueTimeout;
  absl::StatusCode code = absl::StatusCode::kResourceExhausted;
  if (PoolEmpty(request->origin().pair, role)) {
    reason = role == Role::kSmall ? RejectReason::kNoSmallWorker : RejectReason::kLargePoolGone;
    code = absl::StatusCode::kUnavailable;
  }
  const std::string waited = absl::FormatDuration(state_->now - request->phase().since());
  finisher_->Reject(request, reason, code,
                    absl::StrCat("waited ", waited, " for a ", RoleName(role), " worker of pair ",
                                 request->spec().pair(), " with capacity"));
}

void Placement::Forget(RequestMachine* request) {
  state_->timers.Cancel(request->origin().key, Timer::Kind::kWait);
  LeaveLines(request);
}

void Placement::LeaveLines(RequestMachine* request) {
  const Pool suspects = {request->origin().pair, request->grant().role};
  if (suspects_[suspects].Remove(request->origin().key)) return;
  const auto pool = waiting_.find({request->origin().pair, request->grant().role});
  if (pool == waiting_.end() || !pool->second.Remove(request->origin().key)) return;
  state_->newcomers.Add(pool->first.first, request->service().placed ? 0 : -1);
  state_->large_kv_waiting[pool->first.first] -= pool->first.second == Role::kLarge ? 1 : 0;
}

void Placement::Ended(RequestMachine* request) {
  Forget(request);
  state_->timers.CancelAll(request->origin().key);
  if (LineOf(request->origin().pair, Role::kLarge)) ended_in_.insert(request->origin().pair);
}

void Placement::Clear() {
  waiting_.clear();
  suspects_.clear();
  state_->timers.Clear();
  state_->large_kv_waiting.clear();
  look_again_.clear();
  ended_in_.clear();
  state_->newcomers = {};
}

bool Placement::OthersWait(const RequestMachine& request) const {
  const auto line = waiting_.find({request.origin().pair, Role::kLarge});
  if (line == waiting_.end()) return false;
  const auto first = line->second.Next({});
  return first && first->second != request.origin().key;
}

size_t Placement::large_waiting() const {
  size_t waiting = 0;
  for (const auto& [pool, line] : waiting_) {
    if (pool.second == Role::kLarge) waiting += line.size();
  }
  return waiting;
}

WaitLine* Placement::LineOf(int pair, Role role) {
  const auto line = waiting_.find({pair, role});
  return line == waiting_.end() || line->second.empty() ? nullptr : &line->second;
}

bool Placement::PoolEmpty(int pair, Role role) const {
  return state_->directory.pair(pair).workers[Index(role)].empty();
}

bool Placement::LargePoolGivenUp(int pair) const {
  return state_->options.large_pool_gone != LargePoolGone::kWait && PoolEmpty(pair, Role::kLarge) &&
         state_->now >= state_->KnownFrom(pair, Role::kLarge) &&
         !state_->lost_workers.MayReturn(pair, Role::kLarge);
}

bool Placement::HasCapacity(int pair, Role role) const {
  for (const StreamId stream : state_->directory.pair(pair).workers[Index(role)]) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    if (!worker.draining && worker.has_free_slot() && worker.kv.LackingFor(1) == 0) return true;
  }
  return false;
}

void Placement::RetryWaiting(int pair) {
  AdmitSuspects(pair);
  if (WaitLine* const line = LineOf(pair, Role::kSmall)) {
    // Placing changes the queue, so each step looks for the next request: a frame that frees one
    // slot costs one request, however many wait.
    std::optional<WaitLine::Spot> spot;
    while (HasCapacity(pair, Role::kSmall) && (spot = line->Next(spot))) {
      RequestMachine* const request = state_->requests.Find(spot->second);
      if (request != nullptr && request->phase() == Phase::kWaiting) DispatchGrant(request);
    }
  }
  AdmitToLargeKv(pair);
}

void Placement::JudgeWaiting(int pair, Role role) {
  const std::vector<WaitLine::Spot> suspects(suspects_[{pair, role}].spots().begin(),
                                             suspects_[{pair, role}].spots().end());
  suspects_[{pair, role}] = {};
  std::vector<WaitLine::Spot> spots;
  if (WaitLine* const line = LineOf(pair, role)) {
    spots.assign(line->spots().begin(), line->spots().end());
  }
  spots.insert(spots.begin(), suspects.begin(), suspects.end());
  for (const auto& [since, key] : spots) {
    RequestMachine* const request = state_->requests.Find(key);
    if (request != nullptr && request->phase() == Phase::kWaiting) DispatchGrant(request);
  }
}

void Placement::AdmitToLargeKv(int pair) {
  WaitLine* const line = LineOf(pair, Role::kLarge);
  if (line == nullptr) return;
  size_t freeing = 0;
  for (const StreamId stream : state_->directory.pair(pair).workers[Index(Role::kLarge)]) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    if (!worker.draining && !worker.has_free_slot()) freeing += worker.closing.size();
  }
  std::optional<WaitLine::Spot> spot;
  while ((spot = line->Next(spot))) {
    RequestMachine* const request = state_->requests.Find(spot->second);
    if (MustWaitAlone(*request)) {
      Wait(request);
      continue;
    }
    AttachedWorker* worker = Choose(*request, Role::kLarge);
    if (worker == nullptr && freeing > 0) {
      --freeing;  // A slot is being freed for it.
      continue;
    }
    if (worker == nullptr && StillCloses(*request)) continue;
    absl::Time& look_again = look_again_.try_emplace(pair, absl::InfinitePast()).first->second;
    if (worker == nullptr) {
      if (state_->now < look_again) return;
      if (!large_kv_.MakeFor(*request)) {
        look_again = state_->now + kLookAgain;
        return;
      }
      worker = Choose(*request, Role::kLarge);
    }
    // If there is no worker even now, the slot becomes free once the worker confirms the close.
    if (worker != nullptr) PlaceOn(request, worker);
  }
}

bool Placement::StillCloses(const RequestMachine& request) const {
  const Pair& pair = state_->directory.pair(request.origin().pair);
  for (const StreamId stream : pair.workers[Index(Role::kLarge)]) {
    if (state_->directory.Find(stream)->closing.contains(request.origin().key)) return true;
  }
  return false;
}

void Placement::AdmitToLargeKvAnywhere() {
  for (int pair = 0; pair < state_->directory.pairs(); ++pair) AdmitToLargeKv(pair);
}

void Placement::AdmitAfterEnds() {
  for (const int pair : std::exchange(ended_in_, {})) AdmitToLargeKv(pair);
  for (const int pair : std::exchange(state_->suspect_done, {})) AdmitSuspects(pair);
}

void Placement::LeaveLarge(RequestMachine* request) {
  if (request->side(Role::kLarge).worker == 0) return;
  large_kv_.Left(*request);
  const int pair = request->origin().pair;
  WaitLine* const line = LineOf(pair, Role::kLarge);
  if (line == nullptr) return;
  const RequestMachine* const waiting = state_->requests.Find(line->Next({})->second);
  if (Choose(*waiting, Role::kLarge) != nullptr ||
      large_kv_.MakeFor(*waiting, request->origin().key)) {
    AdmitToLargeKv(pair);
  }
}

}  // namespace tokenrouter
