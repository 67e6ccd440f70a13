// Turns a StepBatch into what the decoder takes, after checking it against the engine's limits.
// Ownership: StepInputs is reused from step to step and keeps its capacity. The layout points into
// block tables that must not change while it is used.
// Threads: one owner. Units: tokens and positions.
// Errors: those of Engine::Step that the batch itself causes (libs/inference/engine.h).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "libs/inference/step_batch.h"
#include "libs/paging/sequence_tables.h"
#include "libs/tokens/token_types.h"
#include "libs/torch_engine/model/step_layout.h"

namespace tokenrouter {

struct StepLimits {
  int max_rows = 0;
  int64_t max_step_tokens = 0;
  int max_choices = 0;  // Of one row.
  TokenId usable_ids = 0;
  Position context_limit = 0;
};

// Checks before anything is taken. `tables` are those before the step.
absl::Status ValidateBatch(const StepBatch& batch, const StepLimits& limits,
                           const SequenceTables& tables);

struct StepInputs {
  std::vector<SequenceExtension> extensions;  // One per row.
  std::vector<TokenId> ids;                   // Of all rows, in order.
  std::vector<int> choices;                   // One per row.
  StepLayout layout;                          // One run per row.
};

// Fills everything but the layout.
void CollectInputs(const StepBatch& batch, StepInputs* inputs);
// REQUIRES: the tables are extended by the batch.
void LayOutInputs(const StepBatch& batch, const SequenceTables& tables, StepInputs* inputs);

}  // namespace tokenrouter
