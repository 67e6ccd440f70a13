#include "services/scheduler/state/core_state.h"

#include <algorithm>

#include "services/scheduler/request/side_commands.h"
#include "services/scheduler/request/wait_bound.h"

namespace tokenrouter {
namespace {

void CountWait(const CoreState& state, const RequestMachine& request, AttachedWorker* worker) {
  if (worker->hello.device_key().empty()) return;
  const absl::Duration step = PredictStep(state, *worker, worker->ready, worker->ready);
  const WaitBound bound = BoundOf(request, state.now, state.options.defer_cap);
  worker->oldest_ready = std::min(worker->oldest_ready, state.now);
  worker->serve_by = std::min(worker->serve_by, ServeBy(bound, step));
}

}  // namespace

int32_t ActiveRequests(const CoreState& state, int pair) {
  const auto waiting = state.large_kv_waiting.find(pair);
  return state.requests.live(pair) -
         (waiting == state.large_kv_waiting.end() ? 0 : waiting->second);
}

BatchingPolicy PolicyOf(const CoreState& state, int pair) {
  const CoreOptions& options = state.options;
  if (options.batching.kind != BatchingPolicy::Kind::kModel) return options.batching;
  const PairModel& model = state.ModelOf(pair);
  BatchingPolicy policy = model.Policy(ActiveRequests(state, pair));
  if (options.shared_threshold > 0 && model.seen().topology().shared_device) {
    policy.kind = BatchingPolicy::Kind::kModel;
    policy.m_large = options.shared_threshold;
  }
  return policy;
}

absl::Duration PredictStep(const CoreState& state, const AttachedWorker& worker, int32_t rows,
                           int64_t new_ids) {
  return absl::Milliseconds(
      state.ModelOf(worker.pair).seen().PredictMs(worker.role, rows, new_ids));
}

void RestartQueueTimers(const CoreState& state, AttachedWorker* worker) {
  worker->oldest_ready = absl::InfiniteFuture();
  worker->serve_by = absl::InfiniteFuture();
  if (worker->ready == 0) return;
  for (const uint64_t key : worker->open) {
    const RequestMachine* const request = state.requests.Find(key);
    if (request->service().ready.worker == worker->stream) CountWait(state, *request, worker);
  }
}

PairModel& CoreState::ModelOf(int pair) const {
  while (static_cast<int>(models_.size()) <= pair) {
    models_.push_back(std::make_unique<PairModel>(options.model));
  }
  return *models_[static_cast<size_t>(pair)];
}

ServiceMode CoreState::ModeOf(int pair) const { return forced_mode.value_or(ModelOf(pair).mode()); }

void CountReady(CoreState* state, RequestMachine* request, AttachedWorker* worker) {
  NoteCommand(worker);
  if (request->service().ready.worker == worker->stream) return CountUncomputed(request, worker);
  CountIdle(state, request);
  request->mutable_service().ready.worker = worker->stream;
  // Any earlier step of this worker has ended, or its rows were withdrawn.
  if (worker->ready == 0) {
    worker->step = {};
    worker->step_from_idle = true;
  }
  ++worker->ready;
  CountUncomputed(request, worker);
  state->may_start.insert(worker->stream);
  CountWait(*state, *request, worker);
}

void CountUncomputed(RequestMachine* request, AttachedWorker* worker) {
  if (request->service().ready.worker != worker->stream) return;
  const Position ids = Uncomputed(*request, worker->role);
  worker->uncomputed_ids += ids - request->service().ready.ids;
  request->mutable_service().ready.ids = ids;
}

void CountIdle(CoreState* state, RequestMachine* request) {
  if (request->service().ready.worker == 0) return;
  AttachedWorker* const worker = state->directory.Find(request->service().ready.worker);
  if (worker != nullptr) {
    --worker->ready;
    worker->uncomputed_ids -= request->service().ready.ids;
  }
  request->mutable_service().ready.worker = 0;
  request->mutable_service().ready.ids = 0;
}

void FreeSuspectSlot(CoreState* state, const RequestMachine& request, Role role) {
  AttachedWorker* const worker = state->directory.Find(request.side(role).worker);
  if (worker == nullptr || worker->suspect != request.origin().key) return;
  worker->suspect = 0;
  state->suspect_done.insert(worker->pair);
}

void StartStall(CoreState* state, RequestMachine* request) {
  request->mutable_service().client.stalled_since = state->now;
  ArmStall(state, request, state->now + state->options.client_stall);
}

void ArmStall(CoreState* state, RequestMachine* request, absl::Time at) {
  if (request->service().client.stall_armed) return;
  request->mutable_service().client.stall_armed = true;
  state->timers.Arm({at, request->origin().key, Timer::Kind::kStall});
}

}  // namespace tokenrouter
