#include "services/scheduler/core/row_report_handler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libs/routing/wire_records.h"
#include "services/scheduler/request/grant_state.h"
#include "services/scheduler/request/row_check.h"
#include "services/scheduler/request/side_commands.h"

namespace tokenrouter {
namespace {

// Puts the decode grant into the chunk unless the gateway has it already.
void SendGrant(RequestMachine* request, wire::TokenChunk* chunk) {
  bool& sent = request->mutable_service().grant_sent;
  if (!sent) FillGrantState(request->grant(), chunk->mutable_grant());
  sent = true;
}

}  // namespace

void RowReportHandler::OnRow(AttachedWorker* worker, const wire::RowReport& row) {
  RequestMachine* const request = state_->requests.Find(row.request());
  if (request == nullptr) {
    ++state_->counters.dropped[Index(DropReason::kUnknownRequest)];
    return;
  }
  if (const auto refused = RefusesRow(*request, worker->role, worker->stream, row)) {
    OnRefused(request, worker->role, *refused, row);
    return;
  }
  request->mutable_service().NoteCached(row);
  wire::TokenChunk* const chunk = row.ids_size() > 0 ? AddChunk(*request, row) : nullptr;
  LearnLengths(*request, row);
  Learn(*request, worker->role, row);
  request->Accept(worker->role, row);
  JudgeSuspect(request, worker->role);
  if (row.ids_size() > 0) request->mutable_service().committed_at = state_->now;
  wire::Finish finish;
  if (row.has_finish()) {
    finisher_->Finish(request, row.finish(), chunk);
  } else if (ReachedLength(*request, &finish)) {
    finisher_->Finish(request, finish, chunk);
  } else if (row.has_handoff()) {
    HandOff(request, row.handoff(), chunk);
  } else {
    if (chunk != nullptr) SendGrant(request, chunk);
    state_->requests.FollowReading(*request);
    CountUncomputed(request, worker);
    placement_->OnTokensAccepted(request, worker);
    if (request->credit_blocked()) Block(request);
  }
}

void RowReportHandler::Learn(const RequestMachine& request, Role role, const wire::RowReport& row) {
  const wire::Window::Kind window = request.grant().terms.window().kind();
  // A side that writes until the end decides nothing, and a credit-blocked report decided nothing.
  if (window == wire::Window::KIND_UNTIL_END || (row.ids_size() == 0 && !row.has_handoff())) return;
  PairObservations& seen = state_->ModelOf(request.origin().pair).mutable_seen();
  const auto own = static_cast<char>(AuthorOf(role));
  const auto written = std::count(row.authors().begin(), row.authors().end(), own);
  // The end of a large-only window says nothing about the algorithm.
  if (!request.grant().large_alone) {
    seen.ObserveRows(role, std::max<int64_t>(1, written + row.tail_size()), row.has_handoff());
  }
  if (const int32_t verified = request.grant().terms.verify(); verified > 0) {
    const int64_t kept = row.ids_size() - written;
    seen.ObserveVerified(std::min<int64_t>(verified, kept + 1), std::min<int64_t>(verified, kept));
  }
}

void RowReportHandler::LearnLengths(const RequestMachine& request, const wire::RowReport& row) {
  if (row.ids_size() == 0) return;
  PairModel& model = state_->ModelOf(request.origin().pair);
  if (row.base_position() == request.history().prompt_length()) {
    model.ObserveBegun(request.history().prompt_length() - request.service().cached_ids.value_or(0),
                       request.spec().stop().max_new_tokens());
  }
  model.ObserveCommitted(row.ids_size());
  for (const char author : row.authors()) ++state_->counters.tokens[static_cast<int>(author)];
}

void RowReportHandler::OnRefused(RequestMachine* request, Role role, DropReason reason,
                                 const wire::RowReport& row) {
  ++state_->counters.dropped[Index(reason)];
  // A credit-blocked report may arrive after the row resumed; it says nothing about the history.
  const bool says_more = row.ids_size() > 0 || row.has_handoff() || row.has_finish();
  const bool diverged = reason == DropReason::kBase || reason == DropReason::kMalformed;
  if (diverged && says_more) Diverged(request, role);
  // A side that failed while the other one holds the decode grant is opened again when it is
  // needed.
  if (reason == DropReason::kNotGranted && row.has_finish() && request->grant().role != role) {
    CloseSide(state_, request, role, ReopenCause::kDiverged);
  }
}

wire::TokenChunk* RowReportHandler::AddChunk(const RequestMachine& request,
                                             const wire::RowReport& row) {
  wire::TokenChunk* const chunk =
      state_->outbox.gateways.Get(request.origin().gateway).add_chunks();
  chunk->set_handle(request.origin().handle);
  chunk->set_base_position(row.base_position());
  CopyRecords(row, chunk);
  chunk->set_state(row.state());
  chunk->set_degraded(request.service().degraded);
  chunk->set_large_alone(request.grant().large_alone);
  if (row.base_position() == request.history().prompt_length()) {
    chunk->set_cached_tokens(request.service().cached_ids.value_or(0));
  }
  return chunk;
}

bool RowReportHandler::ReachedLength(const RequestMachine& request, wire::Finish* finish) const {
  const int64_t end = ReservedIds(request.spec());
  if (request.history().committed() < end) return false;
  finish->set_position(static_cast<Position>(end));
  finish->set_reason(api::FINISH_REASON_LENGTH);
  return true;
}

void RowReportHandler::Diverged(RequestMachine* request, Role role) {
  ++request->mutable_service().reopens;
  if (request->service().reopens <= state_->options.max_reopens) {
    placement_->Reopen(request, role);
    return;
  }
  finisher_->Reject(request, RejectReason::kReopenLimit, absl::StatusCode::kInternal,
                    absl::StrCat("gave up after ", request->service().reopens,
                                 " reopens without progress; the worker's rows do not fit the "
                                 "history"));
}

void RowReportHandler::JudgeSuspect(RequestMachine* request, Role role) {
  const RequestSide& side = request->side(role);
  if (side.losses() == 0 || side.rows < state_->options.suspect_rows) return;
  FreeSuspectSlot(state_, *request, role);
  request->mutable_side(role).Absolve();
}

void RowReportHandler::HandOff(RequestMachine* request, const wire::Handoff& handoff,
                               wire::TokenChunk* chunk) {
  const Role from = request->grant().role;
  CountIdle(state_, request);
  FreeSuspectSlot(state_, *request, from);
  // Tentative ids do not survive a restart: their writer must write them again.
  const bool writes_again = !request->history().tail().empty();
  if (chunk != nullptr && writes_again) SendGrant(request, chunk);
  request->SetGrant(mode_->AtHandoff(*request, handoff));
  if (chunk != nullptr && !writes_again) SendGrant(request, chunk);
  state_->requests.FollowReading(*request);
  const Role to = request->grant().role;
  if (to != from) ++state_->counters.handoffs[Index(to)];
  placement_->DispatchGrant(request);
}

void RowReportHandler::Block(RequestMachine* request) {
  CountIdle(state_, request);
  FreeSuspectSlot(state_, *request, request->grant().role);
  StartStall(state_, request);
}

void RowReportHandler::OnAcknowledged(RequestMachine* request) {
  if (request->phase() == Phase::kHeld) {
    if (!HoldsHandoff(*request)) placement_->DispatchGrant(request);
    return;
  }
  if (request->phase() != Phase::kRunning && request->phase() != Phase::kReleasable) return;
  const Role role = request->grant().role;
  // Another suspect may run where it could go on.
  if (request->credit_blocked() && request->side(role).losses() > 0) {
    return placement_->DispatchGrant(request);
  }
  const auto until = RaiseCredit(request, role, /*with_grant=*/false);
  if (!until) return;
  AttachedWorker* const worker = state_->directory.Find(request->side(role).worker);
  wire::Credit* const credit = state_->outbox.workers.Get(worker->stream).add_credits();
  credit->set_request(request->origin().key);
  credit->set_until(*until);
  if (request->phase() == Phase::kRunning) CountReady(state_, request, worker);
}

void RowReportHandler::StallTimer(RequestMachine* request) {
  request->mutable_service().client.stall_armed = false;
  if (!request->credit_blocked() && request->phase() != Phase::kHeld) return;
  const absl::Time until = request->service().client.stalled_since + state_->options.client_stall;
  if (state_->now < until) {
    ArmStall(state_, request, until);
    return;
  }
  finisher_->Reject(
      request, RejectReason::kClientSlow, absl::StatusCode::kDeadlineExceeded,
      absl::StrCat("the client has not taken ",
                   request->history().committed() - request->service().client.acked, " tokens for ",
                   absl::FormatDuration(state_->now - request->service().client.stalled_since)));
}

void RowReportHandler::OnNeedIds(AttachedWorker* worker, const wire::NeedIds& need) {
  RequestMachine* const request = state_->requests.Find(need.request());
  if (request == nullptr) {
    ++state_->counters.dropped[Index(DropReason::kUnknownRequest)];
    return;
  }
  if (request->side(worker->role).worker != worker->stream ||
      !request->mutable_side(worker->role).Forget(need.epoch(), need.have())) {
    ++state_->counters.dropped[Index(DropReason::kEpoch)];
    return;
  }
  const bool has_grant = request->grant().role == worker->role;
  if (need.have() == 0) {
    // The worker has no such sequence, so only an Open can restore it.
    if (has_grant) return Diverged(request, worker->role);
    return CloseSide(state_, request, worker->role, ReopenCause::kDiverged);
  }
  wire::CommandFrame& frame = state_->outbox.workers.Get(worker->stream);
  FillExtend(request, worker->role, frame.add_extends());
  // The worker may have used up the release on the extend that did not fit.
  const bool runs = has_grant && request->phase() == Phase::kRunning;
  if (runs && worker->role == Role::kLarge) frame.add_releases(need.request());
  NoteCommand(worker);
}

void RowReportHandler::OnClosed(AttachedWorker* worker, uint64_t request) {
  worker->closing.erase(request);
}

}  // namespace tokenrouter
