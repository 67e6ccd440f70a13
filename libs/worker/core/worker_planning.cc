// The part of WorkerCore that chooses the next step.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/worker/core/worker_core.h"

namespace tokenrouter {
namespace {

// Share of the blocks that catching up leaves free.
constexpr int64_t kIdleReserveShare = 8;
// A chunk takes at least so many times a step of one id: each reads all weights again.
constexpr int kLeastChunk = 3;

}  // namespace

std::vector<SequenceState*> WorkerCore::Snapshot(std::vector<RowSnapshot>* rows) {
  std::vector<SequenceState*> sequences;
  rows->clear();
  for (const auto& [id, sequence] : table_.all()) {
    if (!sequence->claimed || sequence->ended || held_back_.contains(id)) continue;
    const bool ready = sequence->ready(options_.role);
    // Choices come from running the last ids: KV that covers them already gives them back, and
    // catching up stops before them.
    const Position before_choices = sequence->track.size() - sequence->choices();
    cache_.Cut(id, before_choices);
    sequences.push_back(sequence.get());
    rows->push_back({.known = ready ? sequence->track.size() : before_choices,
                     .in_kv = engine_->Length(id),
                     .choices = ready ? sequence->choices() : 0,
                     .ready = ready,
                     .last_step = sequence->last_step,
                     .age = id.value});
  }
  return sequences;
}

int64_t WorkerCore::MostStepTokens() const {
  absl::Duration most_time = std::max(options_.max_step, kLeastChunk * engine_->Predict(1, 1));
  if (lease_.needed()) most_time = std::min(most_time, lease_.length());
  const auto fits = [&](int64_t ids) { return engine_->Predict(1, ids) <= most_time; };
  int64_t least = kMaxVerify + 1;  // The choices of one row cannot be cut.
  int64_t most = options_.max_step_tokens;
  if (fits(most)) return most;
  while (most - least > 1) {
    const int64_t middle = least + (most - least) / 2;
    (fits(middle) ? least : most) = middle;
  }
  return least;
}

BatchPlan WorkerCore::PlanWithinBlocks(std::vector<SequenceState*>* sequences) {
  const int64_t total = engine_->info().total_blocks;
  bool blocks_are_short = false;
  while (true) {
    std::vector<RowSnapshot> rows;
    *sequences = Snapshot(&rows);
    const StepBudget budget = {
        .max_rows = steps_alone_ > 0 ? 1 : options_.max_rows,
        .max_step_tokens = MostStepTokens(),
        .idle_step_tokens = lease_.needed() ? 0 : options_.idle_step_tokens,
        .background_prefill = read_ahead_,
        .block_size = engine_->info().block_size,
        .free_blocks = free_blocks(),
        .idle_reserve_blocks = total / kIdleReserveShare,
        .by_age = blocks_are_short,
    };
    BatchPlan plan = PlanBatch(rows, budget);
    if (plan.starved.empty()) return plan;
    if (!std::exchange(blocks_are_short, true)) continue;
    SequenceState* oldest = (*sequences)[plan.starved[0]];
    for (const size_t index : plan.starved) {
      if ((*sequences)[index]->id < oldest->id) oldest = (*sequences)[index];
    }
    // Each further round drops the KV of one sequence, so the loop ends.
    if (!Preempt(oldest)) return plan;
  }
}

bool WorkerCore::Preempt(SequenceState* in_need) {
  std::vector<SequenceState*> holders;
  std::vector<VictimCandidate> candidates;
  size_t need_index = 0;
  for (const auto& [id, sequence] : table_.all()) {
    if (sequence.get() == in_need) need_index = holders.size();
    holders.push_back(sequence.get());
    candidates.push_back({.holds_kv = engine_->Length(id) > 0,
                          .ready = sequence->ready(options_.role),
                          .last_step = sequence->last_step,
                          .age = id.value});
  }
  const std::optional<size_t> victim = ChooseVictim(candidates, need_index);
  if (!victim.has_value()) return false;
  cache_.Drop(holders[*victim]->id);
  ++counters_.preemptions;
  return true;
}

void WorkerCore::RefuseTooLarge() {
  const EngineInfo& info = engine_->info();
  for (const auto& [id, sequence] : table_.all()) {
    if (!sequence->ready(options_.role)) continue;
    const int64_t needed = BlocksOf(sequence->track.size(), info.block_size);
    if (needed <= info.total_blocks) continue;
    Refuse(sequence.get(),
           absl::StrCat("a history of ", sequence->track.size(), " tokens needs ", needed,
                        " KV blocks; this worker has ", info.total_blocks, " (raise kv_bytes)"));
  }
}

PlannedStep WorkerCore::MakeStep(const std::vector<SequenceState*>& sequences,
                                 const BatchPlan& plan, absl::Time now) {
  PlannedStep step;
  step.started = now;
  step.idle = plan.idle;
  step.background_ids = plan.background_ids;
  for (const PlannedRow& planned : plan.rows) {
    SequenceState& sequence = *sequences[planned.index];
    const Position first = engine_->Length(sequence.id);
    StepRow row = {.sequence = sequence.id,
                   .first = first,
                   .new_ids = sequence.track.ids().subspan(first, planned.new_ids),
                   .choices = planned.choices,
                   .sampling = nullptr,
                   .signals = {}};
    if (planned.choices > 0) {
      row.signals = sequence.algorithm->Signals(options_.role);
      row.sampling = &sequence.sampling;
      if (sequence.sampling.parameters.has_penalties()) {
        sequence.track.UpdateCounts(sequence.prompt_length,
                                    sequence.track.size() - planned.choices + 1,
                                    &sequence.sampling.generated_counts);
      }
    }
    step.batch.rows.push_back(row);
    step.rows.push_back({sequence.id, planned.choices});
  }
  step.predicted = engine_->Predict(static_cast<int>(plan.rows.size()), step.batch.new_ids());
  return step;
}

}  // namespace tokenrouter
