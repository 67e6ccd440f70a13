#include "libs/torch_engine/torch_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/telemetry/log.h"
#include "libs/timing/real_clock.h"
#include "libs/torch_engine/cpu/available_memory.h"
#include "libs/torch_engine/cpu/kernels/kernel_table.h"
#include "libs/torch_engine/numerics_class.h"
#include "libs/torch_engine/weight_loading.h"

namespace tokenrouter {
namespace {

absl::Status ValidateOptions(const TorchEngineOptions& options) {
  const auto require = [](bool ok, const char* what, int64_t value) {
    if (ok) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(what, " is ", value));
  };
  TR_RETURN_IF_ERROR(
      require(options.kv_bytes > 0, "kv_bytes must be positive but", options.kv_bytes));
  TR_RETURN_IF_ERROR(
      require(options.max_rows > 0, "max_rows must be positive but", options.max_rows));
  TR_RETURN_IF_ERROR(require(options.max_step_tokens > 0, "max_step_tokens must be positive but",
                             options.max_step_tokens));
  TR_RETURN_IF_ERROR(
      require(options.max_choices > 0, "max_choices must be positive but", options.max_choices));
  TR_RETURN_IF_ERROR(
      require(options.usable_ids >= 0, "usable_ids must not be negative but", options.usable_ids));
  return require(options.context_limit >= 0, "context_limit must not be negative but",
                 options.context_limit);
}

// A limit of the options, where it is set, else the model's.
int32_t AtMost(int64_t option, int64_t model_limit) {
  return static_cast<int32_t>(option > 0 ? std::min(option, model_limit) : model_limit);
}

absl::Status RequireKernelsFor(const ModelDescription& model, const std::string& path) {
  if (model.head_dim <= kMaxHeadDim) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": head size (head_dim, attention.key_length) is ", model.head_dim,
                   ", the engine supports up to ", kMaxHeadDim));
}

// Refuses early: packing a model takes long and the KV cache is only mapped at first.
absl::Status RequireMemory(const TorchEngineOptions& options, const ModelDescription& model,
                           int64_t output_rows) {
  return RequireAvailableMemory(
      PackedWeightBytes(model, output_rows, options.weight_format) + options.kv_bytes,
      "the weights and the KV cache (kv_bytes)");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TorchEngine>> TorchEngine::Create(
    const TorchEngineOptions& options) {
  TR_RETURN_IF_ERROR(ValidateOptions(options));
  Parts parts;
  TR_ASSIGN_OR_RETURN(parts.source, ModelSource::Open(options.model_path));
  const ModelDescription& model = parts.source->description();
  TR_RETURN_IF_ERROR(RequireKernelsFor(model, options.model_path));
  const int32_t usable_ids = AtMost(options.usable_ids, model.vocab_rows);
  TR_RETURN_IF_ERROR(RequireMemory(options, model, usable_ids));
  parts.pool = std::make_unique<ThreadPool>(options.threads, options.compute_nice);
  TR_ASSIGN_OR_RETURN(parts.ops, CpuOps::Create(AttentionShapeOf(model),
                                                {.weight_format = options.weight_format,
                                                 .kv_format = options.kv_format,
                                                 .kv_bytes = options.kv_bytes,
                                                 .max_rows = options.max_step_tokens,
                                                 .max_inputs = WidestInput(model),
                                                 .kernels = options.kernels,
                                                 .panel_gemm = options.panel_gemm},
                                                parts.pool.get()));
  LogInfo("arithmetic", {{"device", parts.ops->NumericsName()}});
  TR_ASSIGN_OR_RETURN(DecoderWeights weights,
                      LoadWeights(*parts.source,
                                  {.format = options.weight_format,
                                   .output_rows = usable_ids,
                                   .cache_folder = options.weight_cache,
                                   .cache_bytes = options.weight_cache_bytes,
                                   .progress = options.progress},
                                  parts.ops.get(), parts.pool.get()));
  TR_ASSIGN_OR_RETURN(parts.decoder, Decoder::Create(model, std::move(weights),
                                                     options.max_step_tokens, parts.ops.get()));
  TR_ASSIGN_OR_RETURN(parts.sampler, ChoiceSampler::Create(options.max_choices, usable_ids,
                                                           parts.ops.get(), parts.pool.get()));
  return std::unique_ptr<TorchEngine>(new TorchEngine(options, std::move(parts)));
}

TorchEngine::TorchEngine(const TorchEngineOptions& options, Parts parts)
    : limits_{.max_rows = options.max_rows,
              .max_step_tokens = options.max_step_tokens,
              .max_choices = options.max_choices},
      compute_nice_(options.compute_nice),
      clock_(options.clock != nullptr ? *options.clock : RealClock::Get()),
      parts_(std::move(parts)),
      tables_(parts_.ops->kv_blocks(), kKvBlockTokens) {
  const ModelDescription& model = parts_.source->description();
  info_ = {.model_name = options.model_name.empty() ? model.name : options.model_name,
           .numerics_class =
               NumericsClass(parts_.ops->NumericsName(), parts_.source->ContentFingerprint()),
           .usable_ids = AtMost(options.usable_ids, model.vocab_rows),
           .context_limit = AtMost(options.context_limit, model.context_length),
           .block_size = kKvBlockTokens,
           .total_blocks = parts_.ops->kv_blocks()};
}

void TorchEngine::LowerCallerOnce() {
  const std::thread::id caller = std::this_thread::get_id();
  if (lowered_ == caller) return;
  LowerThisThread(compute_nice_);
  lowered_ = caller;
}

absl::Status TorchEngine::Step(const StepBatch& batch, StepResult* result) {
  LowerCallerOnce();
  const absl::Time start = clock_.Now();
  TR_RETURN_IF_ERROR(CheckBatch(batch, *this, limits_));
  result->choices.clear();
  if (batch.rows.empty()) return absl::OkStatus();
  CollectInputs(batch, &inputs_);
  copies_.clear();
  TR_RETURN_IF_ERROR(tables_.Extend(inputs_.extensions, &copies_));
  const absl::Status status = RunStep(batch, result);
  if (!status.ok()) {
    Undo(batch);
    return status;
  }
  times_.Observe(static_cast<int>(batch.rows.size()), batch.new_ids(),
                 absl::ToDoubleMilliseconds(clock_.Now() - start));
  most_new_ids_ = std::max(most_new_ids_, batch.new_ids());
  return absl::OkStatus();
}

absl::Status TorchEngine::RunStep(const StepBatch& batch, StepResult* result) {
  parts_.ops->CopyBlocks(copies_);
  LayOutInputs(batch, tables_, &inputs_);
  parts_.decoder->Forward(inputs_.layout, inputs_.ids, inputs_.choices);
  return parts_.sampler->Sample(batch, parts_.decoder.get(), result);
}

void TorchEngine::Undo(const StepBatch& batch) {
  for (const StepRow& row : batch.rows) {
    if (row.first == 0) {
      tables_.Release(row.sequence);
    } else {
      tables_.Truncate(row.sequence, row.first);
    }
  }
}

void TorchEngine::Truncate(SequenceId sequence, Position length) {
  tables_.Truncate(sequence, length);
}

absl::Status TorchEngine::Fork(SequenceId parent, SequenceId child, Position length) {
  copies_.clear();
  TR_RETURN_IF_ERROR(tables_.Fork(parent, child, length, &copies_));
  parts_.ops->CopyBlocks(copies_);
  return absl::OkStatus();
}

absl::Duration TorchEngine::Predict(int rows, int64_t new_ids) const {
  if (most_new_ids_ == 0) return absl::ZeroDuration();
  double milliseconds = times_.Predict(rows, new_ids);
  if (new_ids > most_new_ids_) {
    // Short steps cannot tell what a long prompt costs. In proportion is the most it can be.
    const double longest = times_.Predict(rows, most_new_ids_);
    const double share = static_cast<double>(new_ids) / static_cast<double>(most_new_ids_);
    milliseconds = std::max(milliseconds, longest * share);
  }
  return absl::Milliseconds(milliseconds);
}

}  // namespace tokenrouter
