// The part of WorkerCore that lets sequences start from KV that others made or are making.
#include <algorithm>
#include <span>

#include "libs/worker/core/worker_core.h"

namespace tokenrouter {

bool WorkerCore::StartFromPrefixes(const std::vector<SequenceState*>& sequences,
                                   const BatchPlan& plan) {
  const auto starts = [this](const SequenceState& sequence) {
    return engine_->Length(sequence.id) == 0 && !looked_up_.contains(sequence.id);
  };
  const bool any_starts = std::ranges::any_of(
      plan.rows, [&](const PlannedRow& row) { return starts(*sequences[row.index]); });
  if (!any_starts || !options_.prefix_cache) return false;
  PrefixIndex under_way(engine_->info().block_size);
  AddReaders(sequences, plan, &under_way);
  bool changed = false;
  for (const PlannedRow& row : plan.rows) {
    SequenceState& sequence = *sequences[row.index];
    const std::span<const TokenId> ids = sequence.track.ids();
    if (starts(sequence)) {
      // Choices come from running ids, and a turn that is yet to come will want at least one.
      const Position most = sequence.track.size() - std::max(1, sequence.choices());
      const int32_t coming = under_way.Find(sequence.tenant, ids.first(most)).blocks;
      if (coming * engine_->info().block_size > cache_.Known(sequence.tenant, ids.first(most))) {
        held_back_.insert(sequence.id);
        changed = true;
        continue;
      }
      looked_up_.insert(sequence.id);
      const Position shared = cache_.Start(sequence.id, sequence.tenant, ids, most);
      changed |= shared > 0;
      if (!sequence.told_cached) sequence.cached_ids = std::min(shared, sequence.prompt_length);
    }
    under_way.Extend(sequence.id, sequence.tenant, ids.first(sequence.track.committed()));
  }
  return changed;
}

void WorkerCore::AddReaders(const std::vector<SequenceState*>& sequences, const BatchPlan& plan,
                            PrefixIndex* under_way) const {
  absl::flat_hash_set<SequenceId> starved;
  for (const size_t index : plan.starved) starved.insert(sequences[index]->id);
  for (const SequenceState* sequence : sequences) {
    const Position in_kv = engine_->Length(sequence->id);
    const Position unread = sequence->track.size() - in_kv;
    // Of a sequence that only decodes nothing is coming, and going through its ids costs too much.
    if (in_kv == 0 || unread < engine_->info().block_size) continue;
    if (starved.contains(sequence->id) || !(plan.idle || sequence->ready(options_.role))) continue;
    under_way->Extend(sequence->id, sequence->tenant,
                      sequence->track.ids().first(sequence->track.committed()));
  }
}

void WorkerCore::MakeRoomFor(const StepBatch& batch) {
  const int32_t block_size = engine_->info().block_size;
  int64_t needed = 0;
  for (const StepRow& row : batch.rows) {
    const int64_t end = int64_t{row.first} + static_cast<int64_t>(row.new_ids.size());
    needed += BlocksOf(end, block_size) - BlocksOf(row.first, block_size);
  }
  cache_.MakeFree(needed);
}

}  // namespace tokenrouter
