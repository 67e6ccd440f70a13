#include "libs/worker/core/sequence_store.h"

#include <optional>
#include <vector>

#include "libs/worker/step/preemption_policy.h"

namespace tokenrouter {

void SequenceStore::Settle(const SequenceState& sequence) {
  cache_.Settle(sequence.id, sequence.tenant,
                sequence.track.ids().first(sequence.track.committed()));
}

void SequenceStore::Forget(SequenceState* sequence) {
  Settle(*sequence);
  cache_.Close(sequence->id);
  table_.Erase(sequence);
}

bool SequenceStore::ForgetOneUnclaimed() {
  for (const auto& [id, sequence] : table_.all()) {
    if (sequence->claimed) continue;
    Forget(sequence.get());
    return true;
  }
  return false;
}

void SequenceStore::ForgetUnclaimed() {
  std::vector<SequenceState*> unclaimed;
  for (const auto& [id, sequence] : table_.all()) {
    if (!sequence->claimed) unclaimed.push_back(sequence.get());
  }
  for (SequenceState* sequence : unclaimed) Forget(sequence);
}

bool SequenceStore::Preempt(const SequenceState* in_need) {
  std::vector<SequenceId> holders;
  std::vector<VictimCandidate> candidates;
  size_t need_index = 0;
  for (const auto& [id, sequence] : table_.all()) {
    if (sequence.get() == in_need) need_index = holders.size();
    holders.push_back(id);
    candidates.push_back({.holds_kv = engine_->Length(id) > 0,
                          .ready = sequence->ready(role_),
                          .last_step = sequence->last_step,
                          .age = id.value});
  }
  const std::optional<size_t> victim = ChooseVictim(candidates, need_index);
  if (!victim.has_value()) return false;
  cache_.Drop(holders[*victim]);
  return true;
}

int32_t SequenceStore::Ready() const {
  int32_t ready = 0;
  for (const auto& [id, sequence] : table_.all()) ready += sequence->ready(role_);
  return ready;
}

int32_t SequenceStore::Waiting() const {
  int32_t waiting = 0;
  for (const auto& [id, sequence] : table_.all()) {
    waiting += sequence->grant.has_value() && !sequence->ready(role_);
  }
  return waiting;
}

}  // namespace tokenrouter
