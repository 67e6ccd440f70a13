// The sampler turns rows of logits into choices on the CPU, without torch. Order of processing:
// logit bias, penalties (repetition as in CTRL and Hugging Face, then frequency and presence as in
// the OpenAI API, all over generated ids), masking of stop ids before the minimum length,
// temperature, top_k, top_p, min_p, then Gumbel-max with the noise of the choice's position.
// Greedy: the largest processed logit, lowest id on ties.
// Exactness: the choice is the argmax over all ids that the filters keep of
// (logit - max) / temperature + KeyedGumbel, in double. Noise is computed only where an exact bound
// on it leaves a chance; filters decide in float, so ids within about 1e-6 of a limit may fall on
// either side of it, always the same within one process.
// Ownership: logits and context are the caller's for the duration of a call.
// Threads: functions are thread-safe; a SamplerScratch belongs to one thread at a time.
// Errors: INTERNAL when logits hold NaN or +inf, or no usable id is above -inf (broken weights or
// numerics); INVALID_ARGUMENT when stop masking leaves no usable id.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libs/inference/step_batch.h"
#include "libs/sampling/row_scan.h"
#include "libs/sampling/token_filter.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

// Lower temperatures are greedy, since their reciprocal does not fit into a float.
inline constexpr float kLeastTemperature = 1e-5f;

// Memory that calls reuse; its contents mean nothing between calls.
struct SamplerScratch {
  RowScan raw;
  RowScan processed;
  TokenFilter filter;
  std::vector<float> edited;  // Logits after bias, penalties and masking.
  std::vector<RowEntry> entries;
  absl::flat_hash_map<TokenId, int32_t> counts;
};

// Draws the token of `position` from the logits of the position before it. Ids at or above
// `usable_ids` do not exist. REQUIRES: 0 < usable_ids <= logits.size().
absl::StatusOr<Choice> SampleRow(std::span<const float> logits, const SamplingContext& context,
                                 Position position, const SignalRequest& signals,
                                 int32_t usable_ids, SamplerScratch* scratch);

// The row.choices choices of one row. Logits of choice i start at logits[i * stride]. Penalties of
// later choices count the row's own ids before them. REQUIRES: row.sampling not null,
// 0 < row.choices <= row.new_ids.size(), usable_ids <= stride.
absl::Status SampleChoices(const StepRow& row, std::span<const float> logits, int64_t stride,
                           int32_t usable_ids, SamplerScratch* scratch,
                           std::vector<Choice>* choices);

}  // namespace tokenrouter
