// Drives one engine in tests: short calls for steps, and a record of everything a step returned.
// Ownership: the engine is the caller's. Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libs/inference/engine.h"

namespace tokenrouter {

// One row of a step: `choices` of the last positions of `ids`.
struct DrivenRow {
  uint64_t sequence = 0;
  std::vector<TokenId> ids;
  int choices = 0;
};

class EngineDriver {
 public:
  // Greedy unless `temperature` is above 0.
  explicit EngineDriver(Engine* engine, float temperature = 0.0f);

  // How many raw logits every choice carries: with equal bits, the model computed the same.
  void set_recorded_logits(int count) { recorded_logits_ = count; }

  // Runs the rows as one step.
  absl::Status Step(const std::vector<DrivenRow>& rows, StepResult* result);
  // Feeds `prompt` in chunks of `chunk` ids, then generates `count` ids one by one.
  std::vector<TokenId> Generate(uint64_t sequence, const std::vector<TokenId>& prompt, int count,
                                int chunk);

 private:
  Engine* const engine_;
  SamplingContext sampling_;
  int recorded_logits_ = 32;
};

// Ids, logprobs, entropies and logits of a choice, floats as bits.
std::string Fingerprint(const Choice& choice);

}  // namespace tokenrouter
