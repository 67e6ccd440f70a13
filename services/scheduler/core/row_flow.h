// RowFlow applies what workers say about requests: rows of a step, NeedIds, confirmed closes.
// Threads: lives on the scheduler's loop.
#pragma once

#include "services/scheduler/core/mode_rule.h"
#include "services/scheduler/placement/conclusion.h"
#include "services/scheduler/placement/placement.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

class RowFlow {
 public:
  // All must outlive this object.
  RowFlow(CoreState* state, Conclusion* conclusion, Placement* placement, const ModeRule* mode)
      : state_(state), conclusion_(conclusion), placement_(placement), mode_(mode) {}

  void OnRow(AttachedWorker* worker, const v1::RowReport& row);
  void OnNeedIds(AttachedWorker* worker, const v1::NeedIds& need);
  void OnClosed(AttachedWorker* worker, uint64_t request);
  // The client confirmed; a row that waited for it may go on.
  void OnAcknowledged(RequestMachine* request);
  void StallTimer(RequestMachine* request);

 private:
  // What the row says about the pair. REQUIRES: it counts, and was not accepted yet.
  void Learn(const RequestMachine& request, Role role, const v1::RowReport& row);
  void OnRefused(RequestMachine* request, Role role, DropReason reason, const v1::RowReport& row);
  v1::TokenChunk* AddChunk(const RequestMachine& request, const v1::RowReport& row);
  void Diverged(RequestMachine* request, Role role);
  void Depart(RequestMachine* request, const v1::Departure& departure);
  void Park(RequestMachine* request);
  bool ReachedLength(const RequestMachine& request, v1::Finish* finish) const;

  CoreState* const state_;
  Conclusion* const conclusion_;
  Placement* const placement_;
  const ModeRule* const mode_;
};

}  // namespace tokenrouter
