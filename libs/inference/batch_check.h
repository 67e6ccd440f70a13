// The checks that every engine makes before it takes a batch.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "libs/inference/engine.h"
#include "libs/inference/step_batch.h"

namespace tokenrouter {

// The largest step of an engine; 0: no such limit.
struct StepLimits {
  int max_rows = 0;
  int64_t max_step_tokens = 0;
  int max_choices = 0;  // Of one row.
};

// INVALID_ARGUMENT naming sequence, position and limit when an id is not usable, a row ends beyond
// the context limit, or the step is larger than the limits. A row that breaks the contract of
// StepRow is a CHECK: empty, `first` not the sequence's length, more choices than ids, choices
// without sampling.
absl::Status CheckBatch(const StepBatch& batch, const Engine& engine,
                        const StepLimits& limits = {});

}  // namespace tokenrouter
