#include "libs/worker/core/step_reporter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/worker/core/row_outcome.h"

namespace tokenrouter {

void StepReporter::CountStep() {
  ++counters_->steps;
  steps_alone_ = std::max<int64_t>(0, steps_alone_ - 1);
}

int32_t StepReporter::Report(const PlannedStep& step, absl::Time now, wire::WorkerFrame* frame) {
  TR_CHECK(step.result.choices.size() == step.rows.size());
  int32_t handoffs = 0;
  for (size_t i = 0; i < step.rows.size(); ++i) {
    SequenceState* sequence = store_->table().FindById(step.rows[i].sequence);
    TR_CHECK(sequence != nullptr);
    sequence->last_step = counters_->steps;
    counters_->catch_up_ids += step.batch.rows[i].new_ids.size() - step.rows[i].choices;
    if (step.rows[i].choices == 0 || !sequence->claimed) {
      store_->Settle(*sequence);
      continue;
    }
    RowOutcome outcome = ResolveRow(step.result.choices[i], *limits_, sequence);
    store_->cache().Cut(sequence->id, outcome.valid_kv);
    store_->Settle(*sequence);
    sequence->ready_since = sequence->ready(role_) ? now : absl::InfiniteFuture();
    counters_->committed += outcome.committed;
    handoffs += outcome.handed_off;
    // Tentative tokens that stay here are not reported.
    if (outcome.committed > 0 || outcome.handed_off || outcome.finished ||
        outcome.report.credit_blocked()) {
      outcome.report.set_cached_ids(std::exchange(sequence->cached_ids, 0));
      sequence->reported_cached = true;
      *frame->add_rows() = std::move(outcome.report);
    }
  }
  counters_->handoffs += handoffs;
  return handoffs;
}

void StepReporter::Recover(const PlannedStep& step, wire::WorkerFrame* frame) {
  ++counters_->engine_errors;
  if (step.status.code() == absl::StatusCode::kResourceExhausted && FreeBlocks(step)) return;
  if (step.rows.size() > 1) {
    steps_alone_ = static_cast<int64_t>(step.rows.size());
    return;
  }
  for (const PlannedStep::Row& row : step.rows) {
    SequenceState* sequence = store_->table().FindById(row.sequence);
    if (!sequence->claimed) continue;
    sequence->End();
    store_->cache().Drop(sequence->id);
    *frame->add_rows() =
        FinishReport(*sequence, FinishReason::kError,
                     absl::StrCat("engine step failed: ", std::string(step.status.message())));
  }
}

bool StepReporter::FreeBlocks(const PlannedStep& step) {
  // The engine counts blocks better than the plan did: free some and let the next plan try.
  if (store_->cache().Clear()) return true;
  const SequenceState* oldest = store_->table().FindById(step.rows[0].sequence);
  for (const PlannedStep::Row& row : step.rows) {
    if (row.sequence < oldest->id) oldest = store_->table().FindById(row.sequence);
  }
  if (!store_->Preempt(oldest)) return false;
  ++counters_->preemptions;
  return true;
}

}  // namespace tokenrouter
