// The choice of the next step: which rows, how many ids of each. A pure function of a snapshot.
//   1. Rows that end in a choice at once (decode, short catch-up, verification), least recently run
//      first; while longer ones wait they leave capacity for one chunk.
//   2. Rows with more uncomputed tokens, in equal shares of the rest, as many as get a worthwhile
//      chunk.
//   3. Only when nothing is ready and `idle_step_tokens` > 0: rows without a decode grant catch up;
//      with `background_prefill` they are among those of 2 instead, but no KV is dropped for them.
// When blocks are short (`by_age`) there is one queue instead, oldest first, and no row takes a
// block while an older row lacks one: so the oldest always progresses, and then the next. A row
// never gets part of its choices: its last chunk holds all of them. Threads: pure. Units: tokens,
// unless a name says blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libs/tokens/token_types.h"

namespace tokenrouter {

struct RowSnapshot {
  Position known = 0;   // Ids of the history.
  Position in_kv = 0;   // Of these in KV; REQUIRES: known - in_kv >= choices.
  int32_t choices = 0;  // To return at the end of the ids; 0: it has no decode grant.
  bool ready = false;   // Has a decode grant that may run.
  uint64_t last_step = 0;
  uint64_t age = 0;  // Smaller: opened earlier. Only used with by_age.
};

struct StepBudget {
  int32_t max_rows = 1;
  int64_t max_step_tokens = 1;   // REQUIRES: at least the choices of any row.
  int64_t idle_step_tokens = 0;  // Of a step that only catches up; 0: never.
  bool background_prefill = false;
  int32_t block_size = 1;
  int64_t free_blocks = 0;
  int64_t idle_reserve_blocks = 0;  // Left free by catching up.
  bool by_age = false;
};

struct PlannedRow {
  size_t index = 0;  // Into the snapshot.
  int32_t new_ids = 0;
  int32_t choices = 0;  // 0: the chunk does not reach the end.
};

struct BatchPlan {
  std::vector<PlannedRow> rows;
  std::vector<size_t> starved;  // Ready rows that are not in the step because blocks are short.
  bool idle = false;            // Rows only catch up.
  int64_t background_ids = 0;   // Uncomputed tokens of rows without a grant, left to later steps.
};

// A row with at most this many uncomputed tokens counts as short.
inline constexpr int32_t kShortRowIds = 32;
// Fewer uncomputed tokens are not prefilled in the background: the row's next decode step computes
// them at almost no cost, while a separate step would delay a grant that may arrive at any moment.
inline constexpr int32_t kBackgroundIds = 64;

BatchPlan PlanBatch(std::span<const RowSnapshot> sequences, const StepBudget& budget);

}  // namespace tokenrouter
