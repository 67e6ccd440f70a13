#include "services/scheduler/core_state.h"

namespace tokenrouter {

PairModel& CoreState::ModelOf(int pair) const {
  while (static_cast<int>(models_.size()) <= pair) {
    models_.push_back(std::make_unique<PairModel>(options.model));
  }
  return *models_[static_cast<size_t>(pair)];
}

ServiceMode CoreState::ModeOf(int pair) const { return forced_mode.value_or(ModelOf(pair).mode()); }

void CountReady(CoreState* state, RequestMachine* request, AttachedWorker* worker) {
  NoteCommand(worker);
  if (request->counted_on() == worker->stream) return;
  CountIdle(state, request);
  request->CountOn(worker->stream);
  ++worker->ready;
}

void CountIdle(CoreState* state, RequestMachine* request) {
  if (request->counted_on() == 0) return;
  AttachedWorker* const worker = state->directory.Find(request->counted_on());
  if (worker != nullptr) --worker->ready;
  request->CountOn(0);
}

void StartStall(CoreState* state, RequestMachine* request) {
  request->StallsFrom(state->now);
  ArmStall(state, request, state->now + state->options.client_stall);
}

void ArmStall(CoreState* state, RequestMachine* request, absl::Time at) {
  if (request->stall_armed()) return;
  request->ArmStall(true);
  state->timers.Arm({at, request->origin().key, Timer::Kind::kStall});
}

}  // namespace tokenrouter
