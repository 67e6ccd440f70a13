#include "libs/worker/core/worker_history.h"

#include <algorithm>

#include "libs/status/check.h"

namespace tokenrouter {

Position WorkerHistory::Replace(std::span<const TokenId> ids, int32_t tail, Author tail_author) {
  const auto [mine, theirs] = std::mismatch(ids_.begin(), ids_.end(), ids.begin(), ids.end());
  const auto same = static_cast<Position>(mine - ids_.begin());
  Extend(same, ids.subspan(same), tail, tail_author);
  return same;
}

void WorkerHistory::Extend(Position base, std::span<const TokenId> ids, int32_t tail,
                           Author tail_author) {
  TR_CHECK(base >= 0 && base <= size()) << "base " << base << " of " << size();
  const Position old_committed = committed_;
  const std::vector<TokenRecord> old_records = std::move(tail_records_);
  stable_ = std::min(stable_, base);
  ids_.resize(base);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  TR_CHECK(tail >= 0 && tail <= size()) << "tail " << tail << " of " << size();
  committed_ = size() - tail;
  tail_records_.clear();
  for (Position position = committed_; position < size(); ++position) {
    tail_records_.push_back({.id = ids_[position], .author = tail_author});
  }
  for (Position position = std::max(committed_, old_committed); position < base; ++position) {
    tail_records_[position - committed_] = old_records[position - old_committed];
  }
}

void WorkerHistory::AppendTentative(const TokenRecord& record) {
  ids_.push_back(record.id);
  tail_records_.push_back(record);
}

void WorkerHistory::CutTail(int32_t keep) {
  TR_CHECK(keep >= 0 && committed_ + keep <= size()) << "keep " << keep;
  stable_ = std::min(stable_, committed_ + keep);
  ids_.resize(committed_ + keep);
  tail_records_.resize(keep);
}

TokenRecord WorkerHistory::CommitFirst() {
  TR_CHECK(!tail_records_.empty());
  const TokenRecord first = tail_records_.front();
  ++committed_;
  tail_records_.erase(tail_records_.begin());
  return first;
}

void WorkerHistory::UpdateCounts(Position prompt_length, Position until,
                                 absl::flat_hash_map<TokenId, int32_t>* counts) {
  const size_t wanted = std::max(0, until - prompt_length);
  const std::span<const TokenId> generated =
      ids().subspan(std::min<size_t>(prompt_length, ids_.size()));
  TR_CHECK(wanted <= generated.size()) << "until " << until << " of " << size();
  const size_t comparable = std::min(wanted, counted_.size());
  const size_t known = std::min<size_t>(std::max(0, stable_ - prompt_length), comparable);
  const size_t same = std::mismatch(counted_.begin() + known, counted_.begin() + comparable,
                                    generated.begin() + known)
                          .first -
                      counted_.begin();
  for (size_t i = same; i < counted_.size(); ++i) {
    const auto found = counts->find(counted_[i]);
    if (--found->second == 0) counts->erase(found);
  }
  counted_.resize(same);
  for (size_t i = same; i < wanted; ++i) {
    ++(*counts)[generated[i]];
    counted_.push_back(generated[i]);
  }
  stable_ = prompt_length + static_cast<Position>(wanted);
}

}  // namespace tokenrouter
