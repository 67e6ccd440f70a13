#include "libs/torch_engine/step_inputs.h"

namespace tokenrouter {

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
