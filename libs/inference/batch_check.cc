#include "libs/inference/batch_check.h"

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

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

absl::Status CheckBatch(const StepBatch& batch, const Engine& engine) {
  for (const StepRow& row : batch.rows) {
    TR_CHECK(!row.new_ids.empty()) << "sequence " << row.sequence.value << " has an empty row";
    TR_CHECK(row.first == engine.Length(row.sequence))
        << "sequence " << row.sequence.value << " has " << engine.Length(row.sequence)
        << " tokens, the row starts at " << row.first;
    TR_CHECK(row.choices >= 0 && row.choices <= static_cast<int64_t>(row.new_ids.size()))
        << row.choices << " choices of " << row.new_ids.size() << " ids";
    TR_CHECK(row.choices == 0 || row.sampling != nullptr) << "choices without sampling";
  }
  for (const StepRow& row : batch.rows) TR_RETURN_IF_ERROR(CheckRow(row, engine.info()));
  return absl::OkStatus();
}

}  // namespace tokenrouter
