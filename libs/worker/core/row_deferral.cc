#include "libs/worker/core/row_deferral.h"

#include <algorithm>

namespace tokenrouter {

RowDeferral::RowDeferral(const WorkerCoreOptions& options, SequenceStore* store,
                         WorkerCounters* counters)
    : role_(options.role), store_(store), counters_(counters), rule_(options.max_rows) {
  for (const wire::StepSample& sample : options.samples) {
    rule_.Observe(sample.rows(), sample.new_ids(), absl::Microseconds(sample.elapsed_us()));
  }
}

void RowDeferral::OnFrame(const wire::CommandFrame& frame, absl::Time now, absl::Time arrived) {
  StampReadyRows(now);
  if (frame.has_deferral()) rule_.SetDeferral(frame.deferral());
  if (frame.has_peer_step()) rule_.SetPeerStep(frame.peer_step(), arrived);
}

void RowDeferral::Observe(const PlannedStep& step, absl::Duration elapsed) {
  rule_.Observe(static_cast<int>(step.batch.rows.size()), step.batch.new_ids(), elapsed);
}

void RowDeferral::Detach() {
  deferred_until_ = absl::InfiniteFuture();
  rule_.Detach();
}

bool RowDeferral::Defers(const StepPlan& plan, bool alone, absl::Time now) {
  deferred_until_ = absl::InfiniteFuture();
  const BatchPlan& batch = plan.batch;
  if (batch.rows.empty() || batch.idle) {
    rule_.Cancel();
    return false;
  }
  ReadyRows ready = {.rows = static_cast<int>(batch.rows.size()), .oldest_since = now};
  ready.may_wait = batch.starved.empty() && !alone;
  ready.full = store_->Ready() > ready.rows;
  for (const PlannedRow& row : batch.rows) {
    ready.new_ids += row.new_ids;
    // A chunk of a prompt gains nothing from company.
    const bool lengthy = row.new_ids > std::max(kShortRowIds, row.choices);
    if (row.choices == 0 || lengthy) ready.may_wait = false;
    ready.oldest_since = std::min(ready.oldest_since, plan.sequences[row.index]->ready_since);
  }
  const absl::Duration round_trip = rule_.RoundTrip(ready.rows, ready.new_ids);
  for (const PlannedRow& row : batch.rows) {
    ready.launch_by = std::min(ready.launch_by, LaunchBy(*plan.sequences[row.index], round_trip));
  }
  const LocalDeferral::Decision decision = rule_.Decide(ready, now);
  if (decision.wait()) {
    deferred_until_ = decision.wait_until;
    return true;
  }
  ++counters_->deferrals[static_cast<int>(decision.outcome)];
  return false;
}

absl::Time RowDeferral::LaunchBy(const SequenceState& sequence, absl::Duration round_trip) const {
  const DeferBounds& bounds = sequence.defer;
  absl::Duration most = bounds.one_wait;
  if (sequence.track.committed() <= sequence.prompt_length) {
    // How much of the time to the first token is gone, only the scheduler knows.
    if (bounds.first_token != absl::InfiniteDuration()) most = absl::ZeroDuration();
  } else {
    // The row may route: then the token comes from the other side's step after this one.
    most = std::min(most, std::max(absl::ZeroDuration(), bounds.between_tokens - round_trip));
  }
  return sequence.ready_since + most;
}

void RowDeferral::StampReadyRows(absl::Time now) {
  int arrivals = 0;
  for (const auto& [id, sequence] : store_->table().all()) {
    if (!sequence->ready(role_)) {
      sequence->ready_since = absl::InfiniteFuture();
    } else if (sequence->ready_since == absl::InfiniteFuture()) {
      sequence->ready_since = now;
      ++arrivals;
    }
  }
  rule_.CountArrivals(arrivals);
}

}  // namespace tokenrouter
