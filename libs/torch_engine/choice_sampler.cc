#include "libs/torch_engine/choice_sampler.h"

#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {

absl::StatusOr<std::unique_ptr<ChoiceSampler>> ChoiceSampler::Create(int logit_rows,
                                                                     int32_t usable_ids, Ops* ops,
                                                                     ThreadPool* pool) {
  std::unique_ptr<ChoiceSampler> sampler(new ChoiceSampler(logit_rows, usable_ids, pool));
  TR_ASSIGN_OR_RETURN(sampler->logits_, ops->AllocateFloats(int64_t{logit_rows} * usable_ids));
  return sampler;
}

ChoiceSampler::ChoiceSampler(int logit_rows, int32_t usable_ids, ThreadPool* pool)
    : logit_rows_(logit_rows), usable_ids_(usable_ids), pool_(pool), scratch_(pool->threads()) {}

absl::Status ChoiceSampler::Sample(const StepBatch& batch, Decoder* decoder, StepResult* result) {
  result->choices.resize(batch.rows.size());
  int64_t done = 0;
  for (size_t first = 0; first < batch.rows.size();) {
    int64_t choices = 0;
    size_t last = first;
    for (; last < batch.rows.size() && choices + batch.rows[last].choices <= logit_rows_; ++last) {
      choices += batch.rows[last].choices;
    }
    TR_CHECK(last > first) << "a row of more choices than logit rows";
    if (choices > 0) {
      decoder->Logits(done, choices, logits_->data());
    }
    TR_RETURN_IF_ERROR(SampleRows(batch, first, last, result));
    done += choices;
    first = last;
  }
  return absl::OkStatus();
}

absl::Status ChoiceSampler::SampleRows(const StepBatch& batch, size_t first, size_t last,
                                       StepResult* result) {
  offsets_.clear();
  int64_t choices = 0;
  for (size_t row = first; row < last; ++row) {
    offsets_.push_back(choices);
    choices += batch.rows[row].choices;
  }
  statuses_.assign(last - first, absl::OkStatus());
  pool_->For(static_cast<int64_t>(last - first), choices * usable_ids_, [&](int64_t i, int thread) {
    const StepRow& row = batch.rows[first + i];
    std::vector<Choice>* const out = &result->choices[first + i];
    out->clear();
    if (row.choices == 0) return;
    const std::span<const float> logits(logits_->data() + offsets_[i] * usable_ids_,
                                        int64_t{row.choices} * usable_ids_);
    statuses_[i] = SampleChoices(row, logits, usable_ids_, usable_ids_, &scratch_[thread], out);
  });
  for (const absl::Status& status : statuses_) TR_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace tokenrouter
