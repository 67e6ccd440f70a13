#include "services/scheduler/dispatch/worker_hints.h"

#include <algorithm>
#include <cmath>

namespace tokenrouter {

void WorkerHints::SendDeferral() {
  for (int pair = 0; pair < state_->directory.pairs(); ++pair) {
    const auto& workers = state_->directory.pair(pair).workers[Index(Role::kSmall)];
    if (workers.empty()) continue;
    const wire::Deferral rule = DeferralOf(
        PolicyOf(*state_, pair), state_->ModelOf(pair).seen().curve(Role::kLarge).RelativeSpread(),
        state_->options.defer_cap);
    for (const StreamId stream : workers) {
      AttachedWorker* const small = state_->directory.Find(stream);
      // On a shared device the lease decides, so no row waits there, even if it is shared only
      // later.
      SendDeferralTo(small, state_->directory.NeedsLease(*small) ? wire::Deferral() : rule);
    }
  }
}

void WorkerHints::SendDeferralTo(AttachedWorker* small, const wire::Deferral& rule) {
  if (!DeferralDiffers(small->told.rule, rule)) return;
  const bool waited = small->told.waits;
  small->told.rule = rule;
  small->told.waits = MayWait(rule);
  *state_->outbox.workers.Get(small->stream).mutable_deferral() = rule;
  if (small->told.waits && !waited) SendPeerStep(small);
}

void WorkerHints::SendPeerSteps() {
  for (const int pair : state_->large_steps_changed) {
    for (const StreamId stream : state_->directory.pair(pair).workers[Index(Role::kSmall)]) {
      AttachedWorker* const small = state_->directory.Find(stream);
      if (small->told.waits) SendPeerStep(small);
    }
  }
  state_->large_steps_changed.clear();
}

int32_t WorkerHints::RowsFrom(const AttachedWorker& large, StreamId small) const {
  int32_t rows = 0;
  for (const uint64_t key : large.open) {
    const RequestMachine& request = *state_->requests.Find(key);
    const bool runs = request.service().ready.worker == large.stream;
    rows += runs && request.side(Role::kSmall).worker == small ? 1 : 0;
  }
  return rows;
}

void WorkerHints::SendPeerStep(AttachedWorker* small) {
  steps_.clear();
  for (const StreamId stream : state_->directory.pair(small->pair).workers[Index(Role::kLarge)]) {
    const AttachedWorker& large = *state_->directory.Find(stream);
    if (large.step.running()) steps_.push_back({large.step, RowsFrom(large, small->stream)});
  }
  const std::optional<LargeStep> relevant = RelevantStep(steps_);
  const int32_t batch = relevant ? relevant->step.rows : 0;
  ToldDeferral& told = small->told;
  const bool changed = batch != told.batch || (relevant && relevant->step.since != told.since);
  if (!changed) return;
  told.batch = batch;
  wire::PeerStep* const step = state_->outbox.workers.Get(small->stream).mutable_peer_step();
  step->Clear();
  step->set_seq(++told.steps);
  if (!relevant) return;
  told.since = relevant->step.since;
  const double returns =
      state_->ModelOf(small->pair).seen().returned().mean() * relevant->rows_from_here;
  step->set_batch(batch);
  step->set_expected_returns(static_cast<int32_t>(std::lround(returns)));
  step->set_elapsed_us(absl::ToInt64Microseconds(state_->now - relevant->step.since));
  step->set_predicted_us(absl::ToInt64Microseconds(relevant->step.predicted));
}

}  // namespace tokenrouter
