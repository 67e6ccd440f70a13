// Computes the choices of a step: logits of a few positions at a time, then the sampler on all
// threads, one row each.
// Ownership: owns the logits buffer and one scratch per thread. Threads: one owner.
// Units: logits are floats, usable ids per row.
// Errors: those of SampleChoices.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libs/inference/step_batch.h"
#include "libs/sampling/sampler.h"
#include "libs/torch_engine/cpu/thread_pool.h"
#include "libs/torch_engine/model/decoder.h"

namespace tokenrouter {

class ChoiceSampler {
 public:
  // Holds logits of `logit_rows` positions: no row of a batch may have more choices.
  static absl::StatusOr<std::unique_ptr<ChoiceSampler>> Create(int logit_rows, int32_t usable_ids,
                                                               Ops* ops, ThreadPool* pool);

  // REQUIRES: `decoder` ran the batch last.
  absl::Status Sample(const StepBatch& batch, Decoder* decoder, StepResult* result);

 private:
  ChoiceSampler(int logit_rows, int32_t usable_ids, ThreadPool* pool);
  // Samples batch rows [first, last), whose logits are in the buffer.
  absl::Status SampleRows(const StepBatch& batch, size_t first, size_t last, StepResult* result);

  const int logit_rows_;
  const int32_t usable_ids_;
  ThreadPool* const pool_;
  std::unique_ptr<FloatBuffer> logits_;
  std::vector<SamplerScratch> scratch_;  // One per thread.
  std::vector<int64_t> offsets_;         // First logit row of each batch row of a part.
  std::vector<absl::Status> statuses_;
};

}  // namespace tokenrouter
