// RowReportHandler applies what workers report about requests: rows of a step, NeedIds, confirmed
// closes. Threads: lives on the scheduler's loop.
#pragma once

#include "services/scheduler/core/mode_rule.h"
#include "services/scheduler/placement/placement.h"
#include "services/scheduler/placement/request_finisher.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

class RowReportHandler {
 public:
  // All must outlive this object.
  RowReportHandler(CoreState* state, RequestFinisher* finisher, Placement* placement,
                   const ModeRule* mode)
      : state_(state), finisher_(finisher), placement_(placement), mode_(mode) {}

  void OnRow(AttachedWorker* worker, const wire::RowReport& row);
  void OnNeedIds(AttachedWorker* worker, const wire::NeedIds& need);
  void OnClosed(AttachedWorker* worker, uint64_t request);
  // The client acknowledged tokens; a row that waited for it may go on.
  void OnAcknowledged(RequestMachine* request);
  void StallTimer(RequestMachine* request);

 private:
  // Feeds the row into the pair's model. REQUIRES: !RefusesRow(row), and Accept was not called yet.
  void Learn(const RequestMachine& request, Role role, const wire::RowReport& row);
  // Likewise of how long prompt and answer are, and who wrote the answer.
  void LearnLengths(const RequestMachine& request, const wire::RowReport& row);
  void OnRefused(RequestMachine* request, Role role, DropReason reason, const wire::RowReport& row);
  wire::TokenChunk* AddChunk(const RequestMachine& request, const wire::RowReport& row);
  void Diverged(RequestMachine* request, Role role);
  // A suspect that has written enough is none any more.
  void JudgeSuspect(RequestMachine* request, Role role);
  // `chunk`: what the row committed; null: nothing.
  void HandOff(RequestMachine* request, const wire::Handoff& handoff, wire::TokenChunk* chunk);
  // The row waits for its client: it does not run, and other suspects may.
  void Block(RequestMachine* request);
  bool ReachedLength(const RequestMachine& request, wire::Finish* finish) const;

  CoreState* const state_;
  RequestFinisher* const finisher_;
  Placement* const placement_;
  const ModeRule* const mode_;
};

}  // namespace tokenrouter
