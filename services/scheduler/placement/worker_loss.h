// WorkerLoss decides what becomes of requests whose worker is gone. Workers that are lost together
// leave the directory first, all of them; only then is each request that had a side on any of them
// judged, once, among the workers that are left. One that ran on max_worker_losses lost workers in
// a row is given up; until it has written, it is placed as a suspect (suspects.cc). Threads: lives
// on the scheduler's loop.
#pragma once

#include <vector>

#include "services/scheduler/placement/placement.h"
#include "services/scheduler/placement/request_finisher.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

class WorkerLoss {
 public:
  // All must outlive this object.
  WorkerLoss(CoreState* state, RequestFinisher* finisher, Placement* placement)
      : state_(state), finisher_(finisher), placement_(placement) {}

  // Its sides are open nowhere any more. It may come back within `grace`, and its requests await
  // it; the next Judge after that decides about them.
  // REQUIRES: called before the worker leaves the directory.
  void Leaves(AttachedWorker* worker, absl::Duration grace);
  // It has attached again: what it held reopens there, so that its KV is of use.
  void Returned(AttachedWorker* worker);
  // Decides about the requests of all workers that have left. At each tick and flush.
  void Judge();

 private:
  // The requests whose decode grant was there, each once; none awaits the workers any more.
  std::vector<uint64_t> Stranded(const std::vector<LostWorker>& lost);
  // On `back`, or when that is null wherever there is room.
  void GoOn(RequestMachine* request, AttachedWorker* back);

  CoreState* const state_;
  RequestFinisher* const finisher_;
  Placement* const placement_;
};

}  // namespace tokenrouter
