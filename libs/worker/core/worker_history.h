// WorkerHistory is what a worker knows of one request's history: committed ids, then a tentative
// tail with the records that are reported once they are committed. It also keeps the counts that
// penalties need, so that a step costs nothing that grows with the context.
// Ownership: owns its vectors. Threads: not thread-safe; lives with the sequence.
// Units: positions are canonical, prompt included. Entropies are nats.
// Errors: a cut beyond the end or a tail longer than the history is a CHECK.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "libs/tokens/token_record.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

class WorkerHistory {
 public:
  // Starts over with `ids`, of which the last `tail` are tentative and by `tail_author`. Returns
  // the length of the prefix that did not change.
  Position Replace(std::span<const TokenId> ids, int32_t tail, Author tail_author);
  // Cuts to `base`, appends `ids`; the last `tail` ids are tentative. A tentative id that was here
  // before keeps its record, others are by `tail_author`. REQUIRES: 0 <= base <= size().
  void Extend(Position base, std::span<const TokenId> ids, int32_t tail, Author tail_author);

  // Appends to the tail.
  void AppendTentative(const TokenRecord& record);
  // Cuts the tail to its first `keep` ids.
  void CutTail(int32_t keep);
  // The first tentative id becomes committed; returns its record. REQUIRES: the tail is not empty.
  TokenRecord CommitFirst();
  TokenRecord& tail_record(int32_t index) { return tail_records_[index]; }

  std::span<const TokenId> ids() const { return ids_; }
  Position size() const { return static_cast<Position>(ids_.size()); }
  Position committed() const { return committed_; }
  std::span<const TokenId> tail() const { return ids().subspan(committed_); }

  // Brings `counts` to the occurrences of each id in [prompt_length, until). REQUIRES: always the
  // same map and prompt length.
  void UpdateCounts(Position prompt_length, Position until,
                    absl::flat_hash_map<TokenId, int32_t>* counts);

 private:
  std::vector<TokenId> ids_;
  Position committed_ = 0;
  std::vector<TokenRecord> tail_records_;  // One per tentative id.
  // Ids that are in the caller's counts; kept apart from ids_, so that a cut can be undone there.
  std::vector<TokenId> counted_;
  // Up to this position nothing has changed since they were counted, so a step compares only what
  // is new.
  Position stable_ = 0;
};

}  // namespace tokenrouter
