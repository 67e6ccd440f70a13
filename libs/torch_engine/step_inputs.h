// Turns a StepBatch that has been checked (libs/inference/batch_check.h) into the decoder's inputs.
// Ownership: StepInputs is reused from step to step and keeps its capacity. The layout points into
// block tables that must not change while it is used.
// Threads: one owner. Units: tokens and positions.
#pragma once

#include <cstdint>
#include <vector>

#include "libs/inference/step_batch.h"
#include "libs/paging/sequence_tables.h"
#include "libs/tokens/token_types.h"
#include "libs/torch_engine/model/step_layout.h"

namespace tokenrouter {

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
