#include "libs/worker/core/step_builder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/paging/block_types.h"

namespace tokenrouter {
namespace {

// Share of the blocks that catching up leaves free.
constexpr int64_t kIdleReserveShare = 8;
// A chunk takes at least so many times a step of one id: each reads all weights again.
constexpr int kLeastChunk = 3;

}  // namespace

StepBuilder::StepBuilder(const WorkerCoreOptions* options, Engine* engine, const DeviceLease* lease,
                         SequenceStore* store, WorkerCounters* counters)
    : options_(options),
      engine_(engine),
      lease_(lease),
      store_(store),
      counters_(counters),
      prefixes_(options->role, options->prefix_cache, engine, &store->cache()) {}

std::vector<StepBuilder::TooLarge> StepBuilder::FindTooLarge() const {
  const EngineInfo& info = engine_->info();
  std::vector<TooLarge> found;
  for (const auto& [id, sequence] : store_->table().all()) {
    if (!sequence->ready(options_->role)) continue;
    const int64_t needed = BlocksFor(sequence->track.size(), info.block_size);
    if (needed <= info.total_blocks) continue;
    found.push_back(
        {sequence.get(),
         absl::StrCat("a history of ", sequence->track.size(), " tokens needs ", needed,
                      " KV blocks; this worker has ", info.total_blocks, " (raise kv_bytes)")});
  }
  return found;
}

StepPlan StepBuilder::Plan(bool background_prefill, bool alone) {
  background_prefill_ = background_prefill;
  alone_ = alone;
  prefixes_.Begin();
  return PlanWithinBlocks();
}

void StepBuilder::StartFromPrefixes(StepPlan* plan) {
  // Each round starts or holds back a sequence, so the loop ends.
  while (prefixes_.Start(plan->sequences, plan->batch)) *plan = PlanWithinBlocks();
  if (plan->batch.rows.empty() && prefixes_.LetGo()) *plan = PlanWithinBlocks();
}

void StepBuilder::Snapshot(std::vector<SequenceState*>* sequences, std::vector<RowSnapshot>* rows) {
  for (const auto& [id, sequence] : store_->table().all()) {
    if (!sequence->claimed || sequence->ended || prefixes_.IsHeldBack(id)) continue;
    const bool ready = sequence->ready(options_->role);
    // Choices come from running the last ids: KV that covers them already gives them back, and
    // catching up stops before them.
    const Position before_choices = sequence->track.size() - sequence->choices();
    store_->cache().Cut(id, before_choices);
    sequences->push_back(sequence.get());
    rows->push_back({.known = ready ? sequence->track.size() : before_choices,
                     .in_kv = engine_->Length(id),
                     .choices = ready ? sequence->choices() : 0,
                     .ready = ready,
                     .last_step = sequence->last_step,
                     .age = id.value});
  }
}

int64_t StepBuilder::MostStepTokens() const {
  absl::Duration most_time = std::max(options_->max_step, kLeastChunk * engine_->Predict(1, 1));
  if (lease_->needed()) most_time = std::min(most_time, lease_->length());
  const auto fits = [&](int64_t ids) { return engine_->Predict(1, ids) <= most_time; };
  int64_t least = kMaxVerify + 1;  // The choices of one row cannot be cut.
  int64_t most = options_->max_step_tokens;
  if (fits(most)) return most;
  while (most - least > 1) {
    const int64_t middle = least + (most - least) / 2;
    (fits(middle) ? least : most) = middle;
  }
  return least;
}

StepPlan StepBuilder::PlanWithinBlocks() {
  const EngineInfo& info = engine_->info();
  bool blocks_are_short = false;
  while (true) {
    StepPlan plan;
    std::vector<RowSnapshot> rows;
    Snapshot(&plan.sequences, &rows);
    const StepBudget budget = {
        .max_rows = alone_ ? 1 : options_->max_rows,
        .max_step_tokens = MostStepTokens(),
        .idle_step_tokens = lease_->needed() ? 0 : options_->idle_step_tokens,
        .background_prefill = background_prefill_,
        .block_size = info.block_size,
        .free_blocks = store_->free_blocks(),
        .idle_reserve_blocks = info.total_blocks / kIdleReserveShare,
        .by_age = blocks_are_short,
    };
    plan.batch = PlanBatch(rows, budget);
    if (plan.batch.starved.empty()) return plan;
    if (!std::exchange(blocks_are_short, true)) continue;
    SequenceState* oldest = plan.sequences[plan.batch.starved[0]];
    for (const size_t index : plan.batch.starved) {
      if (plan.sequences[index]->id < oldest->id) oldest = plan.sequences[index];
    }
    // Each further round drops the KV of one sequence, so the loop ends.
    if (!store_->Preempt(oldest)) return plan;
    ++counters_->preemptions;
  }
}

void StepBuilder::FreeBlocksFor(const StepBatch& batch) {
  const int32_t block_size = engine_->info().block_size;
  int64_t needed = 0;
  for (const StepRow& row : batch.rows) {
    const int64_t end = int64_t{row.first} + static_cast<int64_t>(row.new_ids.size());
    needed += BlocksFor(end, block_size) - BlocksFor(row.first, block_size);
  }
  store_->cache().MakeFree(needed);
}

PlannedStep StepBuilder::Make(const StepPlan& plan, absl::Time now) {
  PlannedStep step;
  step.started = now;
  step.idle = plan.batch.idle;
  step.background_ids = plan.batch.background_ids;
  for (const PlannedRow& planned : plan.batch.rows) {
    SequenceState& sequence = *plan.sequences[planned.index];
    const Position first = engine_->Length(sequence.id);
    StepRow row = {.sequence = sequence.id,
                   .first = first,
                   .new_ids = sequence.track.ids().subspan(first, planned.new_ids),
                   .choices = planned.choices,
                   .sampling = nullptr,
                   .signals = {}};
    if (planned.choices > 0) {
      row.signals = sequence.algorithm->Signals(options_->role);
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
  step.predicted = engine_->Predict(static_cast<int>(step.rows.size()), step.batch.new_ids());
  FreeBlocksFor(step.batch);
  return step;
}

}  // namespace tokenrouter
