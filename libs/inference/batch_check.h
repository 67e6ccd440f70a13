// What every engine checks before it takes a batch.
#pragma once

#include "absl/status/status.h"
#include "libs/inference/engine.h"
#include "libs/inference/step_batch.h"

namespace tokenrouter {

// INVALID_ARGUMENT naming sequence, position and limit when an id is not usable or a row ends
// beyond the context limit. A row that breaks the contract of StepRow is a CHECK: empty, `first`
// not the sequence's length, more choices than ids, choices without sampling.
absl::Status CheckBatch(const StepBatch& batch, const Engine& engine);

}  // namespace tokenrouter
