// TorchEngine is the real engine: a model of the llama family on this machine's CPU, with weights
// in int8, int4 or fp32 and paged KV in fp32 or int8. Linear layers run on the XNNPACK inside
// libtorch, int8 and int4 ones on our own kernels where the processor has AVX-512 VNNI. Ownership:
// owns model, KV and compute threads. Threads: libs/inference/engine.h; the thread that calls Step
// takes part in the computing and is lowered to compute_nice at its first step. Units: bytes are
// exact; 0 in an option means its stated default. Errors of Create: those of ModelSource::Open;
// INVALID_ARGUMENT for an option out of range; RESOURCE_EXHAUSTED when memory does not suffice,
// naming what was needed and what there is. Errors of Step beyond engine.h: INVALID_ARGUMENT for a
// batch above max_rows, max_step_tokens or max_choices; INTERNAL when the model computes NaN.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/batching_model/step_time_estimator.h"
#include "libs/inference/batch_check.h"
#include "libs/inference/engine.h"
#include "libs/paging/sequence_tables.h"
#include "libs/timing/clock.h"
#include "libs/torch_engine/choice_sampler.h"
#include "libs/torch_engine/cpu/cpu_ops.h"
#include "libs/torch_engine/cpu/thread_pool.h"
#include "libs/torch_engine/model/decoder.h"
#include "libs/torch_engine/model/kv_format.h"
#include "libs/torch_engine/model/weight_format.h"
#include "libs/torch_engine/step_inputs.h"
#include "libs/weights/model_source.h"
#include "libs/weights/packed/packed_cache.h"

namespace tokenrouter {

struct TorchEngineOptions {
  std::string model_path;  // A .gguf file or a Hugging Face folder.
  std::string model_name;  // Empty: the one the model gives itself.
  WeightFormat weight_format = WeightFormat::kInt8;
  KvFormat kv_format = KvFormat::kFp32;
  int64_t kv_bytes = int64_t{1} << 30;
  int threads = 0;                         // 0: one per core this process may use.
  int compute_nice = kDefaultComputeNice;  // 0: normal priority.
  int max_rows = 64;                       // Most rows of a step.
  int64_t max_step_tokens = 512;           // Most new ids of a step.
  int max_choices = 32;        // Most choices of one row; also logit rows held at a time.
  TokenId usable_ids = 0;      // 0: every row of the embedding table.
  Position context_limit = 0;  // 0: what the model was made for. Never above it.
  // Null: the fastest of this processor. Tests and benches pin others; with pinned kernels and a
  // null panel_gemm XNNPACK runs int8 and int4.
  const KernelTable* kernels = nullptr;
  const PanelGemm* panel_gemm = nullptr;
  const Clock* clock = nullptr;  // Times steps; null: the real one.
  std::string weight_cache;      // Folder of packed weights; empty: none. fp32 is never kept.
  int64_t weight_cache_bytes = kDefaultPackedCacheBytes;  // Most bytes of that folder.
  // Weights packed, or read from the cache, so far and in all; called on the creating thread.
  std::function<void(int64_t done, int64_t total)> progress;
};

class TorchEngine : public Engine {
 public:
  static absl::StatusOr<std::unique_ptr<TorchEngine>> Create(const TorchEngineOptions& options);

  const EngineInfo& info() const override { return info_; }
  int64_t unallocated_blocks() const override { return tables_.unallocated_blocks(); }
  int64_t reclaimable_blocks() const override { return tables_.reclaimable_blocks(); }
  Position Length(SequenceId sequence) const override { return tables_.Length(sequence); }
  absl::Status Step(const StepBatch& batch, StepResult* result) override;
  void Truncate(SequenceId sequence, Position length) override;
  void Release(SequenceId sequence) override { tables_.Release(sequence); }
  absl::Status Fork(SequenceId parent, SequenceId child, Position length) override;
  void MarkReclaimable(SequenceId sequence) override { tables_.MarkReclaimable(sequence); }
  absl::Duration Predict(int rows, int64_t new_ids) const override;

 private:
  // What Create made, in order of construction: each part may use those before it.
  struct Parts {
    std::unique_ptr<ModelSource> source;
    std::unique_ptr<ThreadPool> pool;
    std::unique_ptr<CpuOps> ops;
    std::unique_ptr<Decoder> decoder;
    std::unique_ptr<ChoiceSampler> sampler;
  };
  TorchEngine(const TorchEngineOptions& options, Parts parts);
  void LowerCallerOnce();
  absl::Status RunStep(const StepBatch& batch, StepResult* result);
  // Forgets what a failed step added.
  void Undo(const StepBatch& batch);

  const StepLimits limits_;
  const int compute_nice_;
  const Clock& clock_;
  const Parts parts_;
  EngineInfo info_;
  SequenceTables tables_;
  StepTimeEstimator times_;
  int64_t most_new_ids_ = 0;  // Of a step that ran.
  std::thread::id lowered_;   // The thread that runs steps, once its priority is lowered.
  // Of the current step, kept for their capacity.
  StepInputs inputs_;
  std::vector<BlockCopy> copies_;
};

}  // namespace tokenrouter
