// RowScan is one row of logits with the largest value of each block, which makes finding the few
// ids that matter cheap: blocks whose maximum is too small are never read again.
// Ownership: the logits are the caller's and must live as long as the scan is used. Reuse one
// object for many rows: it keeps its memory.
// Threads: not thread-safe.
// Order of ids everywhere: larger logit first, lower id first among equals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "libs/sampling/row_kernels.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

struct RowEntry {
  TokenId id = 0;
  float logit = 0.0f;
  friend bool operator==(const RowEntry&, const RowEntry&) = default;
};

// True when `a` comes first.
inline bool Before(const RowEntry& a, const RowEntry& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

class RowScan {
 public:
  // Reads the row. REQUIRES: not empty. NaN logits are not seen here: look at ExpSums.
  void Read(std::span<const float> logits);

  std::span<const float> logits() const { return logits_; }
  int64_t blocks() const { return static_cast<int64_t>(maxima_.size()); }
  float block_max(int64_t block) const { return maxima_[block]; }
  // The ids of one block; shorter than kRowBlock at the end of the row.
  std::span<const float> block(int64_t block) const {
    return logits_.subspan(block * kRowBlock,
                           std::min<size_t>(kRowBlock, logits_.size() - block * kRowBlock));
  }

  float max() const { return max_; }
  // The first id in the order.
  TokenId argmax() const { return argmax_; }

  // Replaces `entries` by the first `count` ids (fewer when fewer are above -inf), the last of them
  // at the back, otherwise unordered. REQUIRES: count > 0.
  void FindLargest(int64_t count, std::vector<RowEntry>* entries);
  // Replaces `values` by all logits of at least `bound` that are above -inf.
  void CollectValues(float bound, std::vector<float>* values) const;
  // The `ordinal`-th id (1 for the first) whose logit is exactly `value`; the last such id when
  // there are fewer, -1 when there is none.
  TokenId FindValue(float value, int64_t ordinal) const;

 private:
  std::span<const float> logits_;
  std::vector<float> maxima_;
  std::vector<float> order_;  // Of FindLargest.
  float max_ = 0.0f;
  TokenId argmax_ = 0;
};

}  // namespace tokenrouter
