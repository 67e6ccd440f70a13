// HashModel is a language model based on hashes: after every sequence of ids a small set of
// candidate ids has a distribution, which is a pure function of (seed, ids so far). Tests and
// simulations run the whole system on it without torch.
// Its entropies are spread like those of a real model: most positions are almost certain, about a
// fifth lie above 0.45 nats, a few above 1.5.
// Two roles with the same seed are a pair: the large one gives the small one's distribution except
// at a share of 1 - acceptance_rate of the positions, where it has different candidates.
// Sampling goes through SampleRow over the candidates, so temperature, filters, penalties, masking
// and seeds act as they do on a real model; the noise is keyed by the rank of a candidate.
// Threads: const and thread-safe, except for the scratch passed in.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/inference/step_batch.h"
#include "libs/sampling/sampler.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

struct HashModelOptions {
  uint64_t seed = 1;  // Of the pair.
  Role role = Role::kSmall;
  double acceptance_rate = 0.9;  // [0, 1].
  int32_t usable_ids = 1000;     // More than kHashCandidates + eos_ids.size().
  std::vector<TokenId> eos_ids;  // Candidates only where the model ends a text.
  double eos_probability = 0.0;  // Share of positions at which eos_ids[0] is the likeliest.
};

inline constexpr int kHashCandidates = 8;

// The ids of one sequence as rolling hashes, one per length, so that a step costs O(new ids) and
// truncation nothing.
class HashHistory {
 public:
  Position length() const { return static_cast<Position>(hashes_.size()); }
  void Append(std::span<const TokenId> ids);
  // REQUIRES: 0 <= length <= length().
  void Truncate(Position length) { hashes_.resize(length); }
  HashHistory Prefix(Position length) const;
  // Hash of the first `length` ids.
  uint64_t At(Position length) const { return length == 0 ? kStart : hashes_[length - 1]; }

 private:
  static constexpr uint64_t kStart = 0x6A09E667F3BCC908u;
  std::vector<uint64_t> hashes_;
};

class HashModel {
 public:
  explicit HashModel(HashModelOptions options);

  const HashModelOptions& options() const { return options_; }

  // The token after the `length` ids whose hash is `history`; it will have position `length`.
  // `counts` are the generated ids so far. Errors: as SampleRow.
  absl::StatusOr<Choice> Next(uint64_t history, Position length, const SamplingContext& context,
                              const absl::flat_hash_map<TokenId, int32_t>& counts,
                              const SignalRequest& signals, SamplerScratch* scratch) const;

 private:
  struct Candidates {
    TokenId ids[kHashCandidates];
    float logits[kHashCandidates];
  };
  Candidates CandidatesAfter(uint64_t history) const;

  HashModelOptions options_;
};

}  // namespace tokenrouter
