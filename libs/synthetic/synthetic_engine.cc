#include "libs/synthetic/synthetic_engine.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/inference/batch_check.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

EngineInfo InfoOf(const SyntheticEngineOptions& options) {
  return {
      .model_name = options.model_name,
      .numerics_class = absl::StrCat("hash-", options.model.seed, "-", RoleName(options.model.role),
                                     "-", options.model.acceptance_rate, "-",
                                     options.model.eos_probability, "-", options.model.usable_ids),
      .usable_ids = options.model.usable_ids,
      .context_limit = options.context_limit,
      .block_size = options.block_size,
      .total_blocks = options.total_blocks,
  };
}

}  // namespace

SyntheticEngine::SyntheticEngine(const SyntheticEngineOptions& options)
    : info_(InfoOf(options)),
      model_(options.model),
      tables_(options.total_blocks, options.block_size) {}

absl::Status SyntheticEngine::Step(const StepBatch& batch, StepResult* result) {
  TR_RETURN_IF_ERROR(CheckBatch(batch, *this));
  std::vector<SequenceExtension> extensions;
  std::vector<SequenceId> created;
  for (const StepRow& row : batch.rows) {
    extensions.push_back({row.sequence, static_cast<Position>(row.new_ids.size())});
    if (!tables_.Contains(row.sequence)) created.push_back(row.sequence);
  }
  std::vector<BlockCopy> copies;  // Histories hold no block, so there is nothing to copy.
  TR_RETURN_IF_ERROR(tables_.Extend(extensions, &copies));
  for (const StepRow& row : batch.rows) histories_[row.sequence].Append(row.new_ids);
  result->choices.resize(batch.rows.size());
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    const absl::Status status = Choose(batch.rows[i], &result->choices[i]);
    if (!status.ok()) {
      Undo(batch, created);
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status SyntheticEngine::Choose(const StepRow& row, std::vector<Choice>* choices) {
  choices->clear();
  if (row.choices == 0) return absl::OkStatus();
  const HashHistory& history = histories_.at(row.sequence);
  const SamplingContext& context = *row.sampling;
  // Later choices see the row's own ids as generated.
  const bool count = row.choices > 1 && context.parameters.has_penalties();
  if (count) counts_ = context.generated_counts;
  for (int i = 0; i < row.choices; ++i) {
    const Position length = history.length() - row.choices + 1 + i;
    if (count && i > 0) ++counts_[row.new_ids[row.new_ids.size() - row.choices + i]];
    TR_ASSIGN_OR_RETURN(Choice choice,
                        Next(history.At(length), length, context,
                             count ? counts_ : context.generated_counts, row.signals));
    choices->push_back(std::move(choice));
  }
  return absl::OkStatus();
}

absl::StatusOr<Choice> SyntheticEngine::Next(uint64_t history, Position length,
                                             const SamplingContext& context,
                                             const absl::flat_hash_map<TokenId, int32_t>& counts,
                                             const SignalRequest& signals) {
  return model_.Next(history, length, context, counts, signals, &scratch_);
}

void SyntheticEngine::Undo(const StepBatch& batch, const std::vector<SequenceId>& created) {
  for (const StepRow& row : batch.rows) Truncate(row.sequence, row.first);
  for (const SequenceId sequence : created) Release(sequence);
}

void SyntheticEngine::Truncate(SequenceId sequence, Position length) {
  tables_.Truncate(sequence, length);
  const auto it = histories_.find(sequence);
  if (it != histories_.end()) it->second.Truncate(length);
}

void SyntheticEngine::Release(SequenceId sequence) {
  tables_.Release(sequence);
  histories_.erase(sequence);
}

absl::Status SyntheticEngine::Fork(SequenceId parent, SequenceId child, Position length) {
  std::vector<BlockCopy> copies;
  TR_RETURN_IF_ERROR(tables_.Fork(parent, child, length, &copies));
  HashHistory prefix = histories_.at(parent).Prefix(length);
  histories_.emplace(child, std::move(prefix));
  return absl::OkStatus();
}

}  // namespace tokenrouter
