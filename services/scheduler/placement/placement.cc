#include "services/scheduler/placement/placement.h"

#include <cstdint>
#include <span>
#include <vector>

#include "libs/status/check.h"
#include "services/scheduler/placement/admission.h"
#include "services/scheduler/request/side_commands.h"
#include "services/scheduler/workers/worker_choice.h"

namespace tokenrouter {
namespace {

WorkerCandidate CandidateOf(const AttachedWorker& worker, const RequestMachine& request,
                            const RequestSide& side, std::span<const uint64_t> prefix_keys) {
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

void Placement::DispatchGrant(RequestMachine* request) {
  const Role role = request->grant().role;
  if (role == Role::kSmall) LeaveLarge(request);
  if (HoldsHandoff(*request)) {
    request->SetPhase(Phase::kHeld, state_->now);
    StartStall(state_, request);
  } else if (MustWaitAlone(*request)) {
    Wait(request);
  } else if (request->side(role).worker != 0) {
    Extend(request);
  } else if (request->side(role).awaited != 0) {
    AwaitJudgement(request);
  } else if (!TryOpen(request)) {
    Wait(request);
  }
}

void Placement::Extend(RequestMachine* request) {
  const Role role = request->grant().role;
  AttachedWorker* const worker = state_->directory.Find(request->side(role).worker);
  TR_CHECK(worker != nullptr) << request->origin().key;
  wire::CommandFrame& frame = state_->outbox.workers.Get(worker->stream);
  wire::Extend* const extend = frame.add_extends();
  FillExtend(request, role, extend);
  if (const auto until = RaiseCredit(request, role, /*with_grant=*/true)) {
    wire::Credit* const credit = frame.add_credits();
    credit->set_request(request->origin().key);
    credit->set_until(*until);
  }
  OnGranted(request, worker);
  if (role == Role::kLarge) large_kv_.Visited(*request, worker);
}

AttachedWorker* Placement::Choose(const RequestMachine& request, Role role) const {
  const Pair& pair = state_->directory.pair(request.origin().pair);
  const auto& workers = pair.workers[Index(role)];
  std::vector<uint64_t> keys;
  if (workers.size() > 1) keys = PrefixKeys(request.spec().tenant(), request.history().ids());
  const bool isolated = IsolationHolds(request, role);
  std::vector<WorkerCandidate> candidates;
  for (const StreamId stream : workers) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    candidates.push_back(CandidateOf(worker, request, request.side(role), keys));
    if (worker.suspect != 0 && isolated) candidates.back().open_for_new = false;
  }
  const auto chosen = ChooseWorker(candidates);
  return chosen ? state_->directory.Find(candidates[*chosen].stream) : nullptr;
}

bool Placement::TryOpen(RequestMachine* request) {
  const Role role = request->grant().role;
  if (role == Role::kLarge && OthersWait(*request)) return false;
  AttachedWorker* const worker = Choose(*request, role);
  if (worker == nullptr) return false;
  PlaceOn(request, worker);
  return true;
}

void Placement::PlaceOn(RequestMachine* request, AttachedWorker* worker) {
  const Pair& pair = state_->directory.pair(worker->pair);
  // Admission could not check the context if no worker had reported the pair's limits yet.
  if (const auto refusal = JudgeContext(request->spec(), pair);
      refusal && !request->service().placed) {
    finisher_->Reject(request, refusal->reason, refusal->code, refusal->message);
    return;
  }
  Forget(request);
  OpenOn(request, worker->role, worker);
  if (worker->role == Role::kSmall) OpenInBackground(request);
}

void Placement::OpenOn(RequestMachine* request, Role role, AttachedWorker* worker) {
  if (request->side(role).epoch > 0) {
    const ReopenCause cause = request->side(role).lost_by;
    ++state_->counters.reopened[Index(role)][Index(cause)];
    if (cause == ReopenCause::kEvicted) state_->counters.rebuilt_ids += request->history().size();
  }
  FillOpen(request, role, worker->stream, worker->numerics_class,
           state_->outbox.workers.Get(worker->stream).add_opens());
  worker->open.insert(request->origin().key);
  worker->sent.Add(PrefixKeys(request->spec().tenant(), request->history().ids()));
  const bool with_grant = request->grant().role == role;
  if (role == Role::kLarge) large_kv_.Opened(*request, worker, with_grant);
  if (with_grant) OnGranted(request, worker);
}

void Placement::OnGranted(RequestMachine* request, AttachedWorker* worker) {
  NoteCommand(worker);
  if (request->side(worker->role).losses() > 0) worker->suspect = request->origin().key;
  if (worker->role == Role::kSmall) {
    request->SetPhase(Phase::kRunning, state_->now);
    CountReady(state_, request, worker);
    return;
  }
  CountIdle(state_, request);
  request->SetPhase(Phase::kReleasable, state_->now);
  worker->releasable[request->origin().key] = {state_->now, Uncomputed(*request, Role::kLarge)};
  state_->releasable_workers.insert(worker->stream);
}

void Placement::Reopen(RequestMachine* request, Role role) {
  AttachedWorker* const worker = state_->directory.Find(request->side(role).worker);
  TR_CHECK(worker != nullptr) << request->origin().key;
  request->mutable_side(role).Lose(ReopenCause::kDiverged);
  OpenOn(request, role, worker);
}

void Placement::ReopenOn(RequestMachine* request, AttachedWorker* worker) {
  const Role role = worker->role;
  if (worker->suspect != 0 && IsolationHolds(*request, role)) {
    if (request->grant().role == role) DispatchGrant(request);
    return;
  }
  request->mutable_side(role).Lose(ReopenCause::kReattached);
  OpenOn(request, role, worker);
}

bool Placement::PrefillsInBackground(const AttachedWorker& large) const {
  const LargePrefill when = state_->options.large_prefill;
  if (when == LargePrefill::kAuto) return large.hello.device_key().empty();
  return when != LargePrefill::kLazy;
}

void Placement::OpenInBackground(RequestMachine* request) {
  if (state_->options.large_prefill == LargePrefill::kLazy) return;
  if (request->side(Role::kLarge).epoch > 0 || LineOf(request->origin().pair, Role::kLarge)) return;
  AttachedWorker* const worker = Choose(*request, Role::kLarge);
  if (worker == nullptr || !PrefillsInBackground(*worker)) return;
  OpenOn(request, Role::kLarge, worker);
  ++state_->counters.background_opens;
}

void Placement::OnTokensAccepted(RequestMachine* request, AttachedWorker* worker) {
  if (worker->role == Role::kLarge) return large_kv_.Grew(*request, worker);
  AttachedWorker* const large = state_->directory.Find(request->side(Role::kLarge).worker);
  if (large == nullptr) return;
  const Position unseen = request->history().committed() - request->side(Role::kLarge).known;
  if (unseen < kCatchUpChunk || !PrefillsInBackground(*large)) return;
  const bool idle = large->ready == 0 && large->releasable.empty();
  const bool eager = state_->options.large_prefill == LargePrefill::kEager;
  if ((!idle && !eager) || large->kv.LackingFor(unseen) > 0) return;
  FillExtend(request, Role::kLarge, state_->outbox.workers.Get(large->stream).add_extends());
  large->kv.Resize(request->origin().key, request->history().size());
  state_->counters.forwarded_ids += unseen;
}

}  // namespace tokenrouter
