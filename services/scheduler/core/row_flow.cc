#include "services/scheduler/core/row_flow.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tokenrouter {

void RowFlow::OnRow(AttachedWorker* worker, const v1::RowReport& row) {
  RequestMachine* const request = state_->requests.Find(row.request());
  if (request == nullptr) {
    ++state_->counters.dropped[Index(DropReason::kUnknownRequest)];
    return;
  }
  if (const auto refused = request->Refuses(worker->role, worker->stream, row)) {
    OnRefused(request, worker->role, *refused, row);
    return;
  }
  request->NoteCached(row);
  v1::TokenChunk* const chunk = row.ids_size() > 0 ? AddChunk(*request, row) : nullptr;
  Learn(*request, worker->role, row);
  request->Accept(worker->role, row);
  if (row.ids_size() > 0) request->CommittedAt(state_->now);
  v1::Finish finish;
  if (row.has_finish()) {
    conclusion_->Finish(request, row.finish(), chunk);
  } else if (ReachedLength(*request, &finish)) {
    conclusion_->Finish(request, finish, chunk);
  } else if (row.has_departure()) {
    Depart(request, row.departure());
  } else {
    state_->requests.FollowReading(*request);
    CountUnread(request, worker);
    placement_->Written(request, worker);
    if (request->parked()) Park(request);
  }
}

void RowFlow::Learn(const RequestMachine& request, Role role, const v1::RowReport& row) {
  const v1::Window::Kind window = request.pen().turn.window().kind();
  // A side that writes to the end has nothing to decide, and one that parks has decided nothing.
  if (window == v1::Window::KIND_UNTIL_END || (row.ids_size() == 0 && !row.has_departure())) return;
  PairModel& model = state_->ModelOf(request.origin().pair);
  const auto own = static_cast<char>(AuthorOf(role));
  const auto written = std::count(row.authors().begin(), row.authors().end(), own);
  // The end of a large-alone window says nothing about the algorithm.
  if (!request.pen().large_alone) {
    model.ObserveRows(role, std::max<int64_t>(1, written + row.tail_size()), row.has_departure());
  }
  if (const int32_t verified = request.pen().turn.verify(); verified > 0) {
    const int64_t kept = row.ids_size() - written;
    model.ObserveVerified(std::min<int64_t>(verified, kept + 1), std::min<int64_t>(verified, kept));
  }
}

void RowFlow::OnRefused(RequestMachine* request, Role role, DropReason reason,
                        const v1::RowReport& row) {
  ++state_->counters.dropped[Index(reason)];
  // Word that a row parks may come after the row went on; it says nothing about the history.
  const bool says_more = row.ids_size() > 0 || row.has_departure() || row.has_finish();
  const bool diverged = reason == DropReason::kBase || reason == DropReason::kMalformed;
  if (diverged && says_more) Diverged(request, role);
  // A side that gave up while the other one writes will be opened afresh when it is needed.
  if (reason == DropReason::kPen && row.has_finish() && request->pen().role != role) {
    CloseSide(state_, request, role, ReopenCause::kDiverged);
  }
}

v1::TokenChunk* RowFlow::AddChunk(const RequestMachine& request, const v1::RowReport& row) {
  PairModel& model = state_->ModelOf(request.origin().pair);
  v1::TokenChunk* const chunk = state_->outbox.gateways.Get(request.origin().gateway).add_chunks();
  chunk->set_handle(request.origin().handle);
  chunk->set_base_position(row.base_position());
  chunk->mutable_ids()->CopyFrom(row.ids());
  chunk->set_authors(row.authors());
  chunk->mutable_entropies()->CopyFrom(row.entropies());
  chunk->mutable_logprobs()->CopyFrom(row.logprobs());
  chunk->set_state(row.state());
  chunk->set_degraded(request.degraded());
  chunk->set_large_alone(request.pen().large_alone);
  if (row.base_position() == request.history().prompt_length()) {
    chunk->set_cached_tokens(request.cached_ids());
    model.ObserveBegun(request.history().prompt_length() - request.cached_ids(),
                       request.spec().stop().max_new_tokens());
  }
  model.ObserveCommitted(row.ids_size());
  for (const char author : row.authors()) ++state_->counters.tokens[static_cast<int>(author)];
  return chunk;
}

bool RowFlow::ReachedLength(const RequestMachine& request, v1::Finish* finish) const {
  const int32_t limit = request.spec().stop().max_new_tokens();
  if (request.history().generated() < limit) return false;
  finish->set_position(request.history().prompt_length() + limit);
  finish->set_reason(v1::FINISH_REASON_LENGTH);
  return true;
}

void RowFlow::Diverged(RequestMachine* request, Role role) {
  request->CountReopen();
  if (request->reopens() <= state_->options.max_reopens) {
    placement_->Reopen(request, role);
    return;
  }
  conclusion_->Reject(request, RejectReason::kReopenLimit, absl::StatusCode::kInternal,
                      absl::StrCat("gave up after ", request->reopens(),
                                   " reopens without progress; the worker's rows do not fit the "
                                   "history"));
}

void RowFlow::Depart(RequestMachine* request, const v1::Departure& departure) {
  const Role from = request->pen().role;
  CountIdle(state_, request);
  request->GivePen(mode_->AtDeparture(*request, departure));
  state_->requests.FollowReading(*request);
  const Role to = request->pen().role;
  if (to != from) ++state_->counters.departures[Index(to)];
  placement_->Forward(request);
}

void RowFlow::Park(RequestMachine* request) {
  CountIdle(state_, request);
  StartStall(state_, request);
}

void RowFlow::OnAcknowledged(RequestMachine* request) {
  if (request->phase() == Phase::kHeld) {
    if (!request->HoldsDeparture()) placement_->Forward(request);
    return;
  }
  if (request->phase() != Phase::kRunning && request->phase() != Phase::kReleasable) return;
  const Role role = request->pen().role;
  const auto until = request->RaiseCredit(role, /*with_pen=*/false);
  if (!until) return;
  AttachedWorker* const worker = state_->directory.Find(request->side(role).worker);
  v1::Credit* const credit = state_->outbox.workers.Get(worker->stream).add_credits();
  credit->set_request(request->origin().key);
  credit->set_until(*until);
  if (request->phase() == Phase::kRunning) CountReady(state_, request, worker);
}

void RowFlow::StallTimer(RequestMachine* request) {
  request->ArmStall(false);
  if (!request->parked() && request->phase() != Phase::kHeld) return;
  const absl::Time until = request->stalled_since() + state_->options.client_stall;
  if (state_->now < until) {
    ArmStall(state_, request, until);
    return;
  }
  conclusion_->Reject(
      request, RejectReason::kClientSlow, absl::StatusCode::kDeadlineExceeded,
      absl::StrCat("the client has not taken ", request->history().committed() - request->acked(),
                   " tokens for ", absl::FormatDuration(state_->now - request->stalled_since())));
}

void RowFlow::OnNeedIds(AttachedWorker* worker, const v1::NeedIds& need) {
  RequestMachine* const request = state_->requests.Find(need.request());
  if (request == nullptr) {
    ++state_->counters.dropped[Index(DropReason::kUnknownRequest)];
    return;
  }
  if (request->side(worker->role).worker != worker->stream ||
      !request->Forget(worker->role, need.epoch(), need.have())) {
    ++state_->counters.dropped[Index(DropReason::kEpoch)];
    return;
  }
  const bool has_pen = request->pen().role == worker->role;
  if (need.have() == 0) {
    // It has no such sequence: only an Open brings it back.
    if (has_pen) return Diverged(request, worker->role);
    return CloseSide(state_, request, worker->role, ReopenCause::kDiverged);
  }
  v1::CommandFrame& frame = state_->outbox.workers.Get(worker->stream);
  request->FillExtend(worker->role, frame.add_extends());
  // The release may have been spent on the extend that did not fit.
  const bool runs = has_pen && request->phase() == Phase::kRunning;
  if (runs && worker->role == Role::kLarge) frame.add_releases(need.request());
  NoteCommand(worker);
}

void RowFlow::OnClosed(AttachedWorker* worker, uint64_t request) { worker->closing.erase(request); }

}  // namespace tokenrouter
