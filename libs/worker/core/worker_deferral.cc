// The part of WorkerCore that lets ready rows wait for a fuller batch.
#include <algorithm>

#include "libs/worker/core/worker_core.h"

namespace tokenrouter {

bool WorkerCore::Defers(const std::vector<SequenceState*>& sequences, const BatchPlan& plan,
                        absl::Time now) {
  deferred_until_ = absl::InfiniteFuture();
  if (!deferral_.has_value()) return false;
  if (plan.rows.empty() || plan.idle) {
    deferral_->Cancel();
    return false;
  }
  ReadyRows ready = {.rows = static_cast<int>(plan.rows.size()), .oldest_since = now};
  ready.may_wait = plan.starved.empty() && steps_alone_ == 0;
  ready.full = Ready() > ready.rows;
  for (const PlannedRow& row : plan.rows) {
    ready.new_ids += row.new_ids;
    // A chunk of a prompt gains nothing from company.
    const bool lengthy = row.new_ids > std::max(kShortRowIds, row.choices);
    if (row.choices == 0 || lengthy) ready.may_wait = false;
    ready.oldest_since = std::min(ready.oldest_since, sequences[row.index]->ready_since);
  }
  const absl::Duration round_trip = deferral_->RoundTrip(ready.rows, ready.new_ids);
  for (const PlannedRow& row : plan.rows) {
    ready.launch_by = std::min(ready.launch_by, LaunchBy(*sequences[row.index], round_trip));
  }
  const LocalDeferral::Decision decision = deferral_->Decide(ready, now);
  if (decision.wait()) {
    deferred_until_ = decision.wait_until;
    return true;
  }
  ++counters_.deferrals[static_cast<int>(decision.outcome)];
  return false;
}

absl::Time WorkerCore::LaunchBy(const SequenceState& sequence, absl::Duration round_trip) const {
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

void WorkerCore::NoteReady(absl::Time now) {
  int arrivals = 0;
  for (const auto& [id, sequence] : table_.all()) {
    if (!sequence->ready(options_.role)) {
      sequence->ready_since = absl::InfiniteFuture();
    } else if (sequence->ready_since == absl::InfiniteFuture()) {
      sequence->ready_since = now;
      ++arrivals;
    }
  }
  deferral_->CountArrivals(arrivals);
}

}  // namespace tokenrouter
