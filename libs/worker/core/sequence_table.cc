#include "libs/worker/core/sequence_table.h"

namespace tokenrouter {

SequenceState* SequenceTable::Claim(uint64_t request, const std::string& request_id,
                                    uint32_t choice) {
  SequenceState*& named = by_name_[Name(request_id, choice)];
  if (named == nullptr) {
    const SequenceId id{next_id_++};
    auto sequence = std::make_unique<SequenceState>();
    sequence->id = id;
    sequence->request_id = request_id;
    sequence->choice = choice;
    named = sequence.get();
    sequences_.emplace(id, std::move(sequence));
  } else if (named->claimed) {
    by_request_.erase(named->request);
  }
  named->claimed = true;
  named->request = request;
  by_request_[request] = named;
  return named;
}

SequenceState* SequenceTable::Find(uint64_t request) const {
  const auto found = by_request_.find(request);
  return found == by_request_.end() ? nullptr : found->second;
}

SequenceState* SequenceTable::FindHeld(const std::string& request_id, uint32_t choice) const {
  const auto found = by_name_.find(Name(request_id, choice));
  return found == by_name_.end() ? nullptr : found->second;
}

SequenceState* SequenceTable::FindById(SequenceId id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

void SequenceTable::Erase(SequenceState* sequence) {
  if (sequence->claimed) by_request_.erase(sequence->request);
  by_name_.erase(Name(sequence->request_id, sequence->choice));
  sequences_.erase(sequence->id);
}

void SequenceTable::UnclaimAll() {
  by_request_.clear();
  for (const auto& [id, sequence] : sequences_) {
    sequence->claimed = false;
    sequence->released = false;
    sequence->grant.reset();
  }
}

}  // namespace tokenrouter
