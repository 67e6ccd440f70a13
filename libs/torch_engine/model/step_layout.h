// What the layers need to know about one step: which tokens belong together and where each
// sequence's KV blocks are. Built once per step, read by every layer.
// Ownership: `blocks` points into block tables that must not change during the step.
// Threads: plain values.
// Units: tokens of the step are numbered 0.. in row order; positions are those of the sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libs/paging/block_types.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

// Consecutive tokens of one sequence.
struct TokenRun {
  int64_t first_token = 0;  // Row of the first one in the step's activations.
  int32_t tokens = 0;
  Position first = 0;               // Position of the first one.
  std::span<const BlockId> blocks;  // Of the whole sequence, this step's tokens included.
};

struct StepLayout {
  std::vector<TokenRun> runs;
  int64_t tokens = 0;
  void Clear() {
    runs.clear();
    tokens = 0;
  }
};

}  // namespace tokenrouter
