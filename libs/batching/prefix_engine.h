// PrefixEngine is a test double of Engine whose next token is a pure function of the whole prefix
// that is in its KV, of the noise key and of the sampling context: any id that is lost, doubled or
// out of place, any wrong count and any KV that outlived its ids changes every token after it. Two
// of them with the same `shared_seed` agree on about `agreement` of the positions.
// Ownership: owns its KV, which is the ids themselves, in paged blocks. Threads: not thread-safe.
// Errors: as Engine says; FailNext injects one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "libs/inference/engine.h"
#include "libs/paging/sequence_tables.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/tokens/keyed_random.h"

namespace tokenrouter {

class PrefixEngine : public Engine {
 public:
  struct Options {
    uint64_t own_seed = 1;
    uint64_t shared_seed = 7;
    double agreement = 0.7;
    int32_t usable_ids = 50;
    Position context_limit = 256;
    int32_t block_size = 4;
    int64_t total_blocks = 1000;
  };

  explicit PrefixEngine(const Options& options)
      : options_(options), tables_(options.total_blocks, options.block_size) {
    info_ = {.model_name = absl::StrCat("prefix-", options.own_seed),
             .numerics_class = "prefix",
             .usable_ids = options.usable_ids,
             .context_limit = options.context_limit,
             .block_size = options.block_size,
             .total_blocks = options.total_blocks};
  }

  const EngineInfo& info() const override { return info_; }
  int64_t free_blocks() const override { return tables_.free_blocks(); }
  Position Length(SequenceId sequence) const override { return tables_.Length(sequence); }

  absl::Status Step(const StepBatch& batch, StepResult* result) override {
    if (!next_error_.ok()) return std::exchange(next_error_, absl::OkStatus());
    std::vector<SequenceExtension> extensions;
    for (const StepRow& row : batch.rows) {
      TR_CHECK(!row.new_ids.empty() && row.first == Length(row.sequence));
      TR_CHECK(row.choices <= static_cast<int>(row.new_ids.size()));
      if (row.first + static_cast<Position>(row.new_ids.size()) > options_.context_limit) {
        return absl::InvalidArgumentError("beyond the context limit");
      }
      extensions.push_back({row.sequence, static_cast<Position>(row.new_ids.size())});
    }
    std::vector<BlockCopy> copies;
    TR_RETURN_IF_ERROR(tables_.Extend(extensions, &copies));
    result->choices.clear();
    for (const StepRow& row : batch.rows) result->choices.push_back(RunRow(row));
    return absl::OkStatus();
  }

  void Truncate(SequenceId sequence, Position length) override {
    tables_.Truncate(sequence, length);
    kv_[sequence].resize(length);
  }
  void Release(SequenceId sequence) override {
    tables_.Release(sequence);
    kv_.erase(sequence);
  }
  absl::Status Fork(SequenceId parent, SequenceId child, Position length) override {
    std::vector<BlockCopy> copies;
    TR_RETURN_IF_ERROR(tables_.Fork(parent, child, length, &copies));
    kv_[child].assign(kv_[parent].begin(), kv_[parent].begin() + length);
    return absl::OkStatus();
  }
  absl::Duration Predict(int rows, int64_t new_ids) const override {
    return absl::Microseconds(1000 + 10 * rows + 5 * new_ids);
  }

  void FailNext(absl::Status status) { next_error_ = std::move(status); }

  // What follows `prefix`; the reference that a whole system must reproduce.
  Choice Next(std::span<const TokenId> prefix, const SamplingContext& sampling) const {
    return NextOf(Hash(prefix), static_cast<Position>(prefix.size()), sampling);
  }

 private:
  static uint64_t Mix(uint64_t a, uint64_t b) {
    uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15ull)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  static uint64_t Hash(std::span<const TokenId> prefix) {
    uint64_t hash = 1;
    for (const TokenId id : prefix) hash = Mix(hash, id);
    return hash;
  }

  std::vector<Choice> RunRow(const StepRow& row) {
    std::vector<TokenId>& kv = kv_[row.sequence];
    std::vector<Choice> choices;
    SamplingContext sampling;
    if (row.choices > 0) sampling = *row.sampling;
    const size_t first_choice = row.new_ids.size() - row.choices;
    for (size_t i = 0; i < row.new_ids.size(); ++i) {
      kv.push_back(row.new_ids[i]);
      if (i < first_choice) continue;
      // The caller's counts reach up to the first choice; later ones add the ids in between.
      if (i > first_choice && sampling.parameters.has_penalties()) {
        ++sampling.generated_counts[row.new_ids[i]];
      }
      choices.push_back(Next(kv, sampling));
    }
    return choices;
  }

  Choice NextOf(uint64_t prefix_hash, Position position, const SamplingContext& sampling) const {
    const SamplingParameters& p = sampling.parameters;
    uint64_t noise = 0;
    if (!p.greedy()) {
      noise = static_cast<uint64_t>(
          KeyedUniform({.seed = p.seed, .choice = p.choice, .position = position}) * 1e9);
    }
    if (p.has_penalties()) {
      for (const auto& [id, count] : sampling.generated_counts) noise += Mix(id, count);
    }
    const uint64_t shared = Mix(Mix(prefix_hash, options_.shared_seed), noise);
    const uint64_t own = Mix(shared, options_.own_seed);
    const bool agrees = static_cast<double>(Mix(shared, 3) % 1000) < options_.agreement * 1000;
    Choice choice;
    choice.id = static_cast<TokenId>((agrees ? shared : own) % options_.usable_ids);
    const std::vector<TokenId>& stops = sampling.stop_ids;
    while (position < sampling.mask_stop_ids_before &&
           std::find(stops.begin(), stops.end(), choice.id) != stops.end()) {
      choice.id = (choice.id + 1) % options_.usable_ids;
    }
    choice.signals.entropy = static_cast<float>(own % 1000) / 1000;
    choice.signals.max_probability = 1 - choice.signals.entropy;
    choice.signals.margin = choice.signals.max_probability;
    choice.logprob = -choice.signals.entropy;
    return choice;
  }

  const Options options_;
  EngineInfo info_;
  SequenceTables tables_;
  absl::flat_hash_map<SequenceId, std::vector<TokenId>> kv_;
  absl::Status next_error_;
};

}  // namespace tokenrouter
