// TokenFilter turns top_k, top_p and min_p into one cut. Each of them keeps a prefix of the ids in
// the order of RowScan, so together they keep the shortest prefix.
// Threads: not thread-safe; reuse one object for many rows: it keeps its memory.
#pragma once

#include <limits>
#include <vector>

#include "libs/sampling/row_scan.h"
#include "libs/tokens/sampling_parameters.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

// Keeps ids with a larger logit than `logit`, and those with exactly it up to `last_id`.
struct FilterCut {
  float logit = -std::numeric_limits<float>::infinity();
  TokenId last_id = std::numeric_limits<TokenId>::max();

  bool Keeps(TokenId id, float value) const {
    return value > logit || (value == logit && id <= last_id);
  }
};

class TokenFilter {
 public:
  // What the parameters keep of a row. top_p counts probability at the temperature, after top_k,
  // and keeps the id that crosses the limit; min_p is relative to the most likely id.
  // REQUIRES: not greedy; the row holds a finite logit, no NaN and no +inf.
  FilterCut Cut(const SamplingParameters& parameters, RowScan* row);

 private:
  FilterCut Nucleus(float temperature, float top_p, const FilterCut& top_k, const RowScan& row);

  std::vector<RowEntry> entries_;
  std::vector<float> values_;
  std::vector<float> buffer_;
};

}  // namespace tokenrouter
