#include "tests/engine/engine_driver.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"

namespace tokenrouter {

EngineDriver::EngineDriver(Engine* engine, float temperature) : engine_(engine) {
  sampling_.parameters.temperature = temperature;
  sampling_.parameters.seed = 17;
}

absl::Status EngineDriver::Step(const std::vector<DrivenRow>& rows, StepResult* result) {
  StepBatch batch;
  for (const DrivenRow& row : rows) {
    StepRow step{.sequence = {row.sequence},
                 .first = engine_->Length({row.sequence}),
                 .new_ids = row.ids,
                 .choices = row.choices,
                 .sampling = &sampling_};
    step.signals.max_probability = step.signals.margin = true;
    step.signals.top_logits = recorded_logits_;
    batch.rows.push_back(step);
  }
  return engine_->Step(batch, result);
}

std::vector<TokenId> EngineDriver::Generate(uint64_t sequence, const std::vector<TokenId>& prompt,
                                            int count, int chunk) {
  std::vector<TokenId> generated;
  StepResult result;
  for (size_t first = 0; first < prompt.size();) {
    const size_t end = std::min(prompt.size(), first + static_cast<size_t>(chunk));
    const absl::Status status = Step({{.sequence = sequence,
                                       .ids = {prompt.begin() + first, prompt.begin() + end},
                                       .choices = end == prompt.size() ? 1 : 0}},
                                     &result);
    TR_CHECK(status.ok()) << status.ToString();
    first = end;
  }
  for (int i = 0; i < count; ++i) {
    generated.push_back(result.choices[0][0].id);
    if (i + 1 == count) break;
    const absl::Status status =
        Step({{.sequence = sequence, .ids = {generated.back()}, .choices = 1}}, &result);
    TR_CHECK(status.ok()) << status.ToString();
  }
  return generated;
}

std::string Fingerprint(const Choice& choice) {
  const auto bits = [](float value) { return absl::Hex(std::bit_cast<uint32_t>(value)); };
  std::string text =
      absl::StrCat(choice.id, " ", bits(choice.logprob), " ", bits(choice.signals.entropy), " ",
                   bits(choice.signals.max_probability), " ", bits(choice.signals.margin));
  for (const auto& [id, logit] : choice.signals.top_logits) {
    absl::StrAppend(&text, " ", id, ":", bits(logit));
  }
  return text;
}

}  // namespace tokenrouter
