// SyntheticEngine is a complete engine on a HashModel: real block accounting and real sampling, no
// weights and no time. FakeEngine and TimedEngine build on it.
// Contract, threads and errors: engine.h. Memory: 8 bytes per token of a sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "libs/inference/engine.h"
#include "libs/paging/sequence_tables.h"
#include "libs/synthetic/hash_model.h"

namespace tokenrouter {

struct SyntheticEngineOptions {
  HashModelOptions model;
  std::string model_name = "hash";
  Position context_limit = 32768;
  int32_t block_size = 16;
  int64_t total_blocks = 65536;
};

class SyntheticEngine : public Engine {
 public:
  explicit SyntheticEngine(const SyntheticEngineOptions& options);

  const EngineInfo& info() const override { return info_; }
  int64_t unallocated_blocks() const override { return tables_.unallocated_blocks(); }
  int64_t reclaimable_blocks() const override { return tables_.reclaimable_blocks(); }
  Position Length(SequenceId sequence) const override { return tables_.Length(sequence); }

  absl::Status Step(const StepBatch& batch, StepResult* result) override;
  void Truncate(SequenceId sequence, Position length) override;
  void Release(SequenceId sequence) override;
  absl::Status Fork(SequenceId parent, SequenceId child, Position length) override;
  void MarkReclaimable(SequenceId sequence) override { tables_.MarkReclaimable(sequence); }
  absl::Duration Predict(int /*rows*/, int64_t /*new_ids*/) const override {
    return absl::ZeroDuration();
  }

 protected:
  // The token after `length` ids with that hash; FakeEngine puts its script here.
  virtual absl::StatusOr<Choice> Next(uint64_t history, Position length,
                                      const SamplingContext& context,
                                      const absl::flat_hash_map<TokenId, int32_t>& counts,
                                      const SignalRequest& signals);

 private:
  absl::Status Choose(const StepRow& row, std::vector<Choice>* choices);
  void Undo(const StepBatch& batch, const std::vector<SequenceId>& created);

  EngineInfo info_;
  HashModel model_;
  SequenceTables tables_;
  absl::flat_hash_map<SequenceId, HashHistory> histories_;
  SamplerScratch scratch_;
  absl::flat_hash_map<TokenId, int32_t> counts_;
};

}  // namespace tokenrouter
