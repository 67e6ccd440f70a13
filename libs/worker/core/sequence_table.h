// SequenceTable holds every sequence of a worker: those of this term by request key, and those that
// are left from an earlier term by (request_id, choice), so that a reopened request finds its ids
// and KV again.
// Ownership: owns the sequences; pointers live until Erase. Does not touch the engine: whoever
// erases a sequence releases its KV. Threads: not thread-safe; lives on the engine's owner loop.
// Iteration is in order of opening, the same on every run.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "libs/worker/core/sequence_state.h"

namespace tokenrouter {

class SequenceTable {
 public:
  using Map = std::map<SequenceId, std::unique_ptr<SequenceState>>;

  // The sequence of an Open: the one that is held under its name, else a new one. Claims it for
  // `request`.
  SequenceState* Claim(uint64_t request, const std::string& request_id, uint32_t choice);
  // Null when this term has no such request.
  SequenceState* Find(uint64_t request) const;
  // Null when nothing is held under this name.
  SequenceState* FindHeld(const std::string& request_id, uint32_t choice) const;
  SequenceState* FindById(SequenceId id) const;
  void Erase(SequenceState* sequence);
  // A new term: every request key is void, every grant ended.
  void UnclaimAll();

  const Map& all() const { return sequences_; }
  size_t size() const { return sequences_.size(); }

 private:
  using Name = std::pair<std::string, uint32_t>;

  uint64_t next_id_ = 1;
  Map sequences_;
  absl::flat_hash_map<uint64_t, SequenceState*> by_request_;
  absl::flat_hash_map<Name, SequenceState*> by_name_;
};

}  // namespace tokenrouter
