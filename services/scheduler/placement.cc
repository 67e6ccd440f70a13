#include "services/scheduler/placement.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "services/scheduler/admission.h"
#include "services/scheduler/worker_choice.h"

namespace tokenrouter {
namespace {

WorkerCandidate CandidateOf(const AttachedWorker& worker, const RequestMachine& request,
                            const RequestMachine::Side& side,
                            std::span<const uint64_t> prefix_keys) {
  WorkerCandidate candidate;
  candidate.stream = worker.stream;
  candidate.open_for_new = !worker.draining && !worker.closing.contains(request.origin().key);
  candidate.same_class = side.numerics_class == 0 || side.numerics_class == worker.numerics_class;
  if (!worker.held.empty()) {
    const auto held = worker.held.find({request.spec().request_id(), request.spec().choice()});
    if (held != worker.held.end()) candidate.held = held->second;
  }
  candidate.sequences = worker.sequences();
  candidate.prefix_worth = PrefixWorth(worker.sent, prefix_keys);
  candidate.max_sequences = worker.hello.max_sequences();
  candidate.free_blocks = worker.free_blocks;
  if (worker.kv.limited()) {
    candidate.free_blocks = worker.kv.total_blocks() - worker.kv.blocks_in_use();
    candidate.lacking_blocks = worker.kv.LackingFor(request.history().size());
  }
  return candidate;
}

}  // namespace

void Placement::Forward(RequestMachine* request) {
  const Role role = request->pen().role;
  if (role == Role::kSmall) LeaveLarge(request);
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
  if (const auto until = request->RaiseCredit(role, /*with_pen=*/true)) {
    v1::Credit* const credit = frame.add_credits();
    credit->set_request(request->origin().key);
    credit->set_until(*until);
  }
  TurnGiven(request, worker);
  if (role == Role::kLarge) room_.Visited(*request, worker);
}

AttachedWorker* Placement::Choose(const RequestMachine& request, Role role) const {
  const Pair& pair = state_->directory.pair(request.origin().pair);
  const auto& workers = pair.workers[Index(role)];
  std::vector<uint64_t> keys;
  if (workers.size() > 1) keys = PrefixKeys(request.spec().tenant(), request.history().ids());
  std::vector<WorkerCandidate> candidates;
  for (const StreamId stream : workers) {
    candidates.push_back(
        CandidateOf(*state_->directory.Find(stream), request, request.side(role), keys));
  }
  const auto chosen = ChooseWorker(candidates);
  return chosen ? state_->directory.Find(candidates[*chosen].stream) : nullptr;
}

bool Placement::StillCloses(const RequestMachine& request) const {
  const Pair& pair = state_->directory.pair(request.origin().pair);
  for (const StreamId stream : pair.workers[Index(Role::kLarge)]) {
    if (state_->directory.Find(stream)->closing.contains(request.origin().key)) return true;
  }
  return false;
}

bool Placement::OthersWait(const RequestMachine& request) const {
  const auto line = waiting_.find({request.origin().pair, Role::kLarge});
  if (line == waiting_.end()) return false;
  const auto first = line->second.Next({});
  return first && first->second != request.origin().key;
}

bool Placement::TryOpen(RequestMachine* request) {
  const Role role = request->pen().role;
  if (role == Role::kLarge && OthersWait(*request)) return false;
  AttachedWorker* const worker = Choose(*request, role);
  if (worker == nullptr) return false;
  Place(request, worker);
  return true;
}

void Placement::Place(RequestMachine* request, AttachedWorker* worker) {
  const Pair& pair = state_->directory.pair(worker->pair);
  // Admission could not check it if no worker had told the pair's limits yet.
  if (const auto refusal = JudgeContext(request->spec(), pair); refusal && !request->placed()) {
    conclusion_->Reject(request, refusal->reason, refusal->code, refusal->message);
    return;
  }
  Forget(request);
  OpenOn(request, worker->role, worker);
  if (worker->role == Role::kSmall) OpenAhead(request);
}

void Placement::OpenOn(RequestMachine* request, Role role, AttachedWorker* worker) {
  if (request->side(role).epoch > 0) {
    const ReopenCause cause = request->side(role).lost_by;
    ++state_->counters.reopened[Index(role)][Index(cause)];
    if (cause == ReopenCause::kEvicted) state_->counters.rebuilt_ids += request->history().size();
  }
  request->FillOpen(role, worker->stream, worker->numerics_class,
                    state_->outbox.workers.Get(worker->stream).add_opens());
  worker->open.insert(request->origin().key);
  worker->sent.Add(PrefixKeys(request->spec().tenant(), request->history().ids()));
  const bool with_pen = request->pen().role == role;
  if (role == Role::kLarge) room_.Opened(*request, worker, with_pen);
  if (with_pen) TurnGiven(request, worker);
}

void Placement::TurnGiven(RequestMachine* request, AttachedWorker* worker) {
  NoteCommand(worker);
  if (worker->role == Role::kSmall) {
    request->SetPhase(Phase::kRunning, state_->now);
    CountReady(state_, request, worker);
    return;
  }
  CountIdle(state_, request);
  request->SetPhase(Phase::kReleasable, state_->now);
  worker->releasable[request->origin().key] = {state_->now, request->Unread(Role::kLarge)};
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
    if (!worker.draining && worker.has_seat() && worker.kv.LackingFor(1) == 0) return true;
  }
  return false;
}

absl::Time Placement::WaitEnd(const RequestMachine& request) const {
  const Role role = request.pen().role;
  const int pair = request.origin().pair;
  const absl::Time queued = request.phase_since();
  if (role == Role::kLarge && request.placed() && !PoolEmpty(pair, role)) {
    return queued + state_->options.large_place_wait;
  }
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
  if (request->pen().own) {
    // The large side was the scheduler's wish: routed service can go on at once.
    request->ReturnToOwnPen();
    Forward(request);
    return;
  }
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
  const absl::Time rank = role == Role::kLarge ? request->phase_since() : absl::InfinitePast();
  if (waiting_[{pair, role}].Add(request->origin().key, rank)) {
    newcomers_ += request->placed() ? 0 : 1;
    state_->large_place_waiting[pair] += role == Role::kLarge ? 1 : 0;
  }
  if (role == Role::kLarge) MakeRoom(pair);
}

void Placement::Forget(RequestMachine* request) {
  const auto pool = waiting_.find({request->origin().pair, request->pen().role});
  if (pool == waiting_.end() || !pool->second.Remove(request->origin().key)) return;
  newcomers_ -= request->placed() ? 0 : 1;
  state_->large_place_waiting[pool->first.first] -= pool->first.second == Role::kLarge ? 1 : 0;
}

void Placement::Clear() {
  waiting_.clear();
  state_->large_place_waiting.clear();
  look_again_.clear();
  ended_in_.clear();
  newcomers_ = 0;
}

WaitLine* Placement::LineOf(int pair, Role role) {
  const auto line = waiting_.find({pair, role});
  return line == waiting_.end() || line->second.empty() ? nullptr : &line->second;
}

size_t Placement::large_waiting() const {
  size_t waiting = 0;
  for (const auto& [pool, line] : waiting_) {
    if (pool.second == Role::kLarge) waiting += line.size();
  }
  return waiting;
}

void Placement::Ended(RequestMachine* request) {
  Forget(request);
  if (LineOf(request->origin().pair, Role::kLarge)) ended_in_.insert(request->origin().pair);
}

void Placement::RetryWaiting(int pair) {
  if (WaitLine* const line = LineOf(pair, Role::kSmall)) {
    // Placing changes the line, so each step looks for the next one: a frame that frees one seat
    // costs one request, however many wait.
    std::optional<WaitLine::Spot> spot;
    while (AnyRoom(pair, Role::kSmall) && (spot = line->Next(spot))) {
      RequestMachine* const request = state_->requests.Find(spot->second);
      if (request != nullptr && request->phase() == Phase::kWaiting) Forward(request);
    }
  }
  MakeRoom(pair);
}

void Placement::JudgeWaiting(int pair, Role role) {
  WaitLine* const line = LineOf(pair, role);
  if (line == nullptr) return;
  const std::vector<WaitLine::Spot> spots(line->spots().begin(), line->spots().end());
  for (const auto& [since, key] : spots) {
    RequestMachine* const request = state_->requests.Find(key);
    if (request != nullptr && request->phase() == Phase::kWaiting) Forward(request);
  }
}

void Placement::MakeRoom(int pair) {
  WaitLine* const line = LineOf(pair, Role::kLarge);
  if (line == nullptr) return;
  size_t freeing = 0;
  for (const StreamId stream : state_->directory.pair(pair).workers[Index(Role::kLarge)]) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    if (!worker.draining && !worker.has_seat()) freeing += worker.closing.size();
  }
  std::optional<WaitLine::Spot> spot;
  while ((spot = line->Next(spot))) {
    RequestMachine* const request = state_->requests.Find(spot->second);
    AttachedWorker* worker = Choose(*request, Role::kLarge);
    if (worker == nullptr && freeing > 0) {
      --freeing;  // A seat is on its way to it.
      continue;
    }
    if (worker == nullptr && StillCloses(*request)) continue;
    absl::Time& look_again = look_again_.try_emplace(pair, absl::InfinitePast()).first->second;
    if (worker == nullptr) {
      if (state_->now < look_again) return;
      if (!room_.MakeFor(*request)) {
        look_again = state_->now + kLookAgain;
        return;
      }
      worker = Choose(*request, Role::kLarge);
    }
    // Without a worker even now: the seat is free once its owner says so.
    if (worker != nullptr) Place(request, worker);
  }
}

void Placement::MakeRoomAnywhere() {
  for (int pair = 0; pair < state_->directory.pairs(); ++pair) MakeRoom(pair);
}

void Placement::MakeRoomOfEnded() {
  for (const int pair : std::exchange(ended_in_, {})) MakeRoom(pair);
}

void Placement::LeaveLarge(RequestMachine* request) {
  if (request->side(Role::kLarge).worker == 0) return;
  room_.Left(*request);
  const int pair = request->origin().pair;
  WaitLine* const line = LineOf(pair, Role::kLarge);
  if (line == nullptr) return;
  const RequestMachine* const waiting = state_->requests.Find(line->Next({})->second);
  if (Choose(*waiting, Role::kLarge) != nullptr || room_.MakeFor(*waiting, request->origin().key)) {
    MakeRoom(pair);
  }
}

// ---- ahead of the turns ----

bool Placement::ReadsAhead(const AttachedWorker& large) const {
  const LargePrefill when = state_->options.large_prefill;
  if (when == LargePrefill::kAuto) return large.hello.device_key().empty();
  return when != LargePrefill::kLazy;
}

void Placement::OpenAhead(RequestMachine* request) {
  if (state_->options.large_prefill == LargePrefill::kLazy) return;
  if (request->side(Role::kLarge).epoch > 0 || LineOf(request->origin().pair, Role::kLarge)) return;
  AttachedWorker* const worker = Choose(*request, Role::kLarge);
  if (worker == nullptr || !ReadsAhead(*worker)) return;
  OpenOn(request, Role::kLarge, worker);
  ++state_->counters.opened_ahead;
}

void Placement::Written(RequestMachine* request, AttachedWorker* worker) {
  if (worker->role == Role::kLarge) return room_.Grew(*request, worker);
  AttachedWorker* const large = state_->directory.Find(request->side(Role::kLarge).worker);
  if (large == nullptr) return;
  const Position unseen = request->history().committed() - request->side(Role::kLarge).known;
  if (unseen < kCatchUpChunk || !ReadsAhead(*large)) return;
  const bool idle = large->ready == 0 && large->releasable.empty();
  const bool eager = state_->options.large_prefill == LargePrefill::kEager;
  if ((!idle && !eager) || large->kv.LackingFor(unseen) > 0) return;
  request->FillExtend(Role::kLarge, state_->outbox.workers.Get(large->stream).add_extends());
  large->kv.Resize(request->origin().key, request->history().size());
  state_->counters.forwarded_ids += unseen;
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
