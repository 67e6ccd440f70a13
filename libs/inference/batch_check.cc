#include "libs/inference/batch_check.h"

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

absl::Status CheckAtMost(int64_t value, int64_t limit, const char* what, const char* option) {
  if (limit == 0 || value <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a step of ", value, " ", what, ", the limit is ", limit, " (", option, ")"));
}

absl::Status CheckRow(const StepRow& row, const EngineInfo& info) {
  const int64_t end = row.first + static_cast<int64_t>(row.new_ids.size());
  if (end > info.context_limit) {
    return absl::InvalidArgumentError(
        absl::StrCat(info.model_name, ": sequence ", row.sequence.value, " would have ", end,
                     " tokens, the context limit is ", info.context_limit));
  }
  for (size_t i = 0; i < row.new_ids.size(); ++i) {
    const TokenId id = row.new_ids[i];
    if (id >= 0 && id < info.usable_ids) continue;
    return absl::InvalidArgumentError(absl::StrCat(info.model_name, ": sequence ",
                                                   row.sequence.value, ", position ",
                                                   row.first + static_cast<int64_t>(i), ": id ", id,
                                                   " is outside [0, ", info.usable_ids, ")"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckBatch(const StepBatch& batch, const Engine& engine, const StepLimits& limits) {
  for (const StepRow& row : batch.rows) {
    TR_CHECK(!row.new_ids.empty()) << "sequence " << row.sequence.value << " has an empty row";
    TR_CHECK(row.first == engine.Length(row.sequence))
        << "sequence " << row.sequence.value << " has " << engine.Length(row.sequence)
        << " tokens, the row starts at " << row.first;
    TR_CHECK(row.choices >= 0 && row.choices <= static_cast<int64_t>(row.new_ids.size()))
        << row.choices << " choices of " << row.new_ids.size() << " ids";
    TR_CHECK(row.choices == 0 || row.sampling != nullptr) << "choices without sampling";
  }
  TR_RETURN_IF_ERROR(
      CheckAtMost(static_cast<int64_t>(batch.rows.size()), limits.max_rows, "rows", "max_rows"));
  TR_RETURN_IF_ERROR(
      CheckAtMost(batch.new_ids(), limits.max_step_tokens, "new ids", "max_step_tokens"));
  for (const StepRow& row : batch.rows) {
    TR_RETURN_IF_ERROR(CheckRow(row, engine.info()));
    TR_RETURN_IF_ERROR(
        CheckAtMost(row.choices, limits.max_choices, "choices in one row", "max_choices"));
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
