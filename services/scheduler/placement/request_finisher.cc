#include "services/scheduler/placement/request_finisher.h"

#include <algorithm>

#include "libs/routing/wire_records.h"

namespace tokenrouter {
namespace {

bool MeansOverload(RejectReason reason) {
  return reason == RejectReason::kQueueFull || reason == RejectReason::kMaxRequests ||
         reason == RejectReason::kMaxIds || reason == RejectReason::kQueueTimeout ||
         reason == RejectReason::kNoSmallWorker || reason == RejectReason::kLargePoolGone;
}

}  // namespace

void CloseSide(CoreState* state, RequestMachine* request, Role role, ReopenCause cause) {
  const RequestSide side = request->side(role);
  if (side.worker == 0) return;
  const uint64_t key = request->origin().key;
  if (request->service().ready.worker == side.worker) CountIdle(state, request);
  FreeSuspectSlot(state, *request, role);
  if (AttachedWorker* const worker = state->directory.Find(side.worker); worker != nullptr) {
    wire::Close* const close = state->outbox.workers.Get(side.worker).add_closes();
    close->set_request(key);
    close->set_epoch(side.epoch);
    worker->open.erase(key);
    worker->kv.Close(key);
    worker->closing.insert(key);
    worker->releasable.erase(key);
  }
  request->mutable_side(role).Lose(cause);
}

void FillRejection(CoreState* state, StreamId gateway, uint64_t handle,
                   const std::string& request_id, const Refusal& refusal) {
  wire::Rejection* const rejection = state->outbox.gateways.Get(gateway).add_rejections();
  rejection->set_handle(handle);
  rejection->set_code(static_cast<int>(refusal.code));
  rejection->set_message(refusal.message);
  rejection->set_reason(kRejectReasonNames[Index(refusal.reason)]);
  if (MeansOverload(refusal.reason)) {
    const absl::Duration retry =
        state->retry.After(state->newcomers.total, refusal.retry_at_least, request_id);
    rejection->set_retry_after_ms(static_cast<int32_t>(absl::ToInt64Milliseconds(retry)));
  }
  ++state->counters.rejected[Index(refusal.reason)];
}

void RequestFinisher::Finish(RequestMachine* request, wire::Finish finish, wire::TokenChunk* last) {
  const TokenHistory& history = request->history();
  const Position end = std::clamp(finish.position(), history.prompt_length(), history.committed());
  finish.set_position(end);
  if (finish.reason() == api::FINISH_REASON_UNSPECIFIED) {
    finish.set_reason(api::FINISH_REASON_STOP);
  }
  CountOverrun(*request, end);
  if (last == nullptr) {
    last = state_->outbox.gateways.Get(request->origin().gateway).add_chunks();
    last->set_handle(request->origin().handle);
    last->set_base_position(history.committed());
    last->set_state(request->state());
    last->set_degraded(request->service().degraded);
  }
  CutRecords(std::max(0, end - last->base_position()), last);
  *last->mutable_finish() = std::move(finish);
  ++state_->counters.finished;
  CloseSides(request);
}

void RequestFinisher::Reject(RequestMachine* request, RejectReason reason, absl::StatusCode code,
                             const std::string& message) {
  FillRejection(state_, request->origin().gateway, request->origin().handle,
                request->spec().request_id(), {reason, code, message});
  CloseSides(request);
}

void RequestFinisher::Abandon(RequestMachine* request) { CloseSides(request); }

void RequestFinisher::CloseSides(RequestMachine* request) {
  CountIdle(state_, request);
  CloseSide(state_, request, Role::kSmall, ReopenCause::kWorkerLost);
  CloseSide(state_, request, Role::kLarge, ReopenCause::kWorkerLost);
  on_end(request);
  request->SetPhase(Phase::kEnded, state_->now);
  state_->requests.Erase(request->origin().key);
}

void RequestFinisher::CountOverrun(const RequestMachine& request, Position end) {
  for (Position i = end; i < request.history().committed(); ++i) {
    ++state_->counters.overrun_tokens[Index(request.history().author(i))];
  }
}

}  // namespace tokenrouter
