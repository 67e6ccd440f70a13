// The choice of the next step: which rows, how many ids of each. A pure function of a snapshot.
//   1. Rows that end in a choice at once (decode, short catch-up, verification), least recently run
//      first; while longer ones wait they leave room for one chunk.
//   2. Rows with more to read, in equal shares of the rest, as many as get a worthwhile chunk.
//   3. Only when nothing is ready and `idle_step_tokens` > 0: rows without a turn catch up; with
//      `background_prefill` they are among those of 2 instead, but nobody makes room for them.
// When blocks are short (`by_age`) there is one line instead, oldest first, and nobody takes a
// block while an older row lacks one: so the oldest always gets on, and then the next. A row never
// gets part of its choices: its last chunk holds all of them. Threads: pure. Units: tokens, unless
// a name says blocks.
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
  int32_t choices = 0;  // To return at the end of the ids; 0: it has no turn.
  bool ready = false;   // Has a turn that may run.
  uint64_t last_step = 0;
  uint64_t age = 0;  // Smaller: opened earlier. Only looked at by age.
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
  std::vector<size_t> starved;  // Ready rows that got no row for want of blocks.
  bool idle = false;            // Rows only catch up.
  int64_t background_ids = 0;   // Left of rows without a turn that later steps catch up with.
};

// Ids left to read of a row that counts as short.
inline constexpr int32_t kShortRowIds = 32;
// Fewer are not read ahead: the row's next turn reads them at next to no cost, while a step of its
// own keeps the device from a turn that may come at any moment.
inline constexpr int32_t kBackgroundIds = 64;

BatchPlan PlanBatch(std::span<const RowSnapshot> sequences, const StepBudget& budget);

}  // namespace tokenrouter
