// What one step of an engine consumes and returns. It is a unified prefill/decode step: prefill,
// decode, catch-up and verification are the same call with different lengths. Ownership: spans and
// pointers are the caller's and must live until Step returns.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "libs/tokens/sampling_parameters.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

// The evidence of one position. Fields that were not requested are 0 or empty; the entropy is
// always filled, since the token record keeps it.
struct StepSignals {
  float entropy = 0.0f;          // Nats, over usable ids, temperature 1.
  float max_probability = 0.0f;  // Of the most likely id.
  float margin = 0.0f;           // Probability of the most likely id minus that of the second.
  std::vector<std::pair<TokenId, float>> top_logits = {};  // Descending; empty unless asked for.
};

struct SignalRequest {
  bool max_probability = false;
  bool margin = false;
  int top_logits = 0;  // How many; 0: none.
  // Read logits after bias, penalties and stop masking; published rules read raw ones.
  bool masked = false;
  friend bool operator==(const SignalRequest&, const SignalRequest&) = default;
};

// The state of one sequence that the sampler needs. The caller keeps it current, so that no cost of
// a step grows with the context.
struct SamplingContext {
  SamplingParameters parameters;
  // Occurrences of each generated id (prompt excluded) in the history before the first returned
  // choice of the row; maintained only when parameters.has_penalties().
  absl::flat_hash_map<TokenId, int32_t> generated_counts;
  std::vector<TokenId> stop_ids;  // Masked while `mask_stop_ids_before` is above the position.
  Position mask_stop_ids_before = 0;
};

struct StepRow {
  SequenceId sequence;
  Position first = 0;  // Position of new_ids[0]; equals the engine's length of the sequence.
  std::span<const TokenId> new_ids;  // At least one.
  int choices = 0;  // Choices to return, at the last `choices` positions; 0: only extend.
  const SamplingContext* sampling = nullptr;  // Not null when choices > 0.
  SignalRequest signals;
};

struct StepBatch {
  std::vector<StepRow> rows;
  int64_t new_ids() const {
    int64_t sum = 0;
    for (const StepRow& row : rows) sum += static_cast<int64_t>(row.new_ids.size());
    return sum;
  }
};

// The token that follows one position, drawn by the row's sampling parameters with the noise of the
// position it will have: position of the input id + 1.
struct Choice {
  TokenId id = 0;
  float logprob = 0.0f;  // Natural log, of the raw distribution.
  StepSignals signals = {};
};

struct StepResult {
  // choices[i] belongs to batch.rows[i] and has rows[i].choices entries, in position order.
  std::vector<std::vector<Choice>> choices;
};

}  // namespace tokenrouter
