#include "libs/worker/core/prefix_starter.h"

#include <algorithm>
#include <span>

namespace tokenrouter {

void PrefixStarter::Begin() {
  held_back_.clear();
  looked_up_.clear();
}

bool PrefixStarter::LetGo() {
  const bool any = !held_back_.empty();
  held_back_.clear();
  return any;
}

bool PrefixStarter::Starts(const SequenceState& sequence) const {
  return engine_->Length(sequence.id) == 0 && !looked_up_.contains(sequence.id);
}

bool PrefixStarter::Start(const std::vector<SequenceState*>& sequences, const BatchPlan& plan) {
  const bool any_starts = std::ranges::any_of(
      plan.rows, [&](const PlannedRow& row) { return Starts(*sequences[row.index]); });
  if (!any_starts || !enabled_) return false;
  const int32_t block_size = engine_->info().block_size;
  PrefixIndex under_way(block_size);
  AddReaders(sequences, plan, &under_way);
  bool changed = false;
  for (const PlannedRow& row : plan.rows) {
    SequenceState& sequence = *sequences[row.index];
    const std::span<const TokenId> ids = sequence.track.ids();
    if (Starts(sequence)) {
      // Choices come from running ids, and a grant that is yet to come will want at least one.
      const Position most = sequence.track.size() - std::max(1, sequence.choices());
      const int32_t coming = under_way.Find(sequence.tenant, ids.first(most)).blocks;
      if (coming * block_size > cache_->Known(sequence.tenant, ids.first(most))) {
        held_back_.insert(sequence.id);
        changed = true;
        continue;
      }
      looked_up_.insert(sequence.id);
      const Position shared = cache_->Start(sequence.id, sequence.tenant, ids, most);
      changed |= shared > 0;
      if (!sequence.reported_cached) sequence.cached_ids = std::min(shared, sequence.prompt_length);
    }
    under_way.Extend(sequence.id, sequence.tenant, ids.first(sequence.track.committed()));
  }
  return changed;
}

void PrefixStarter::AddReaders(const std::vector<SequenceState*>& sequences, const BatchPlan& plan,
                               PrefixIndex* under_way) const {
  absl::flat_hash_set<SequenceId> starved;
  for (const size_t index : plan.starved) starved.insert(sequences[index]->id);
  for (const SequenceState* sequence : sequences) {
    const Position in_kv = engine_->Length(sequence->id);
    const Position uncomputed = sequence->track.size() - in_kv;
    // Of a sequence that only decodes nothing is coming, and going through its ids costs too much.
    if (in_kv == 0 || uncomputed < engine_->info().block_size) continue;
    if (starved.contains(sequence->id) || !(plan.idle || sequence->ready(role_))) continue;
    under_way->Extend(sequence->id, sequence->tenant,
                      sequence->track.ids().first(sequence->track.committed()));
  }
}

}  // namespace tokenrouter
