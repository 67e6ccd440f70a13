#include "libs/torch_engine/step_inputs.h"

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

absl::Status CheckAtMost(int64_t value, int64_t limit, const char* what, const char* option) {
  if (value <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a step of ", value, " ", what, ", the limit is ", limit, " (", option, ")"));
}

absl::Status ValidateRow(const StepRow& row, const StepLimits& limits) {
  const auto count = static_cast<int64_t>(row.new_ids.size());
  if (row.first + count > limits.context_limit) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence ", row.sequence.value, " would reach ", row.first + count,
                     " tokens, the context limit is ", limits.context_limit));
  }
  for (const TokenId id : row.new_ids) {
    if (id >= 0 && id < limits.usable_ids) continue;
    return absl::InvalidArgumentError(absl::StrCat("sequence ", row.sequence.value, " has id ", id,
                                                   ", ids below ", limits.usable_ids, " exist"));
  }
  return CheckAtMost(row.choices, limits.max_choices, "choices in one row", "max_choices");
}

}  // namespace

absl::Status ValidateBatch(const StepBatch& batch, const StepLimits& limits,
                           const SequenceTables& tables) {
  for (const StepRow& row : batch.rows) {
    TR_CHECK(!row.new_ids.empty()) << "sequence " << row.sequence.value;
    TR_CHECK(row.first == tables.Length(row.sequence))
        << "sequence " << row.sequence.value << " starts at " << row.first << " of "
        << tables.Length(row.sequence);
    TR_CHECK(row.choices >= 0 && row.choices <= static_cast<int64_t>(row.new_ids.size()));
    TR_CHECK(row.choices == 0 || row.sampling != nullptr);
  }
  TR_RETURN_IF_ERROR(
      CheckAtMost(static_cast<int64_t>(batch.rows.size()), limits.max_rows, "rows", "max_rows"));
  TR_RETURN_IF_ERROR(
      CheckAtMost(batch.new_ids(), limits.max_step_tokens, "new ids", "max_step_tokens"));
  for (const StepRow& row : batch.rows) TR_RETURN_IF_ERROR(ValidateRow(row, limits));
  return absl::OkStatus();
}

void CollectInputs(const StepBatch& batch, StepInputs* inputs) {
  inputs->extensions.clear();
  inputs->ids.clear();
  inputs->choices.clear();
  for (const StepRow& row : batch.rows) {
    inputs->extensions.push_back(
        {.sequence = row.sequence, .count = static_cast<Position>(row.new_ids.size())});
    inputs->ids.insert(inputs->ids.end(), row.new_ids.begin(), row.new_ids.end());
    inputs->choices.push_back(row.choices);
  }
}

void LayOutInputs(const StepBatch& batch, const SequenceTables& tables, StepInputs* inputs) {
  StepLayout& layout = inputs->layout;
  layout.Clear();
  for (const StepRow& row : batch.rows) {
    const auto tokens = static_cast<int32_t>(row.new_ids.size());
    layout.runs.push_back({.first_token = layout.tokens,
                           .tokens = tokens,
                           .first = row.first,
                           .blocks = tables.Find(row.sequence)->blocks()});
    layout.tokens += tokens;
  }
}

}  // namespace tokenrouter
