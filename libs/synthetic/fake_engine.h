// FakeEngine is a SyntheticEngine under the control of a test: it generates scripted tokens after
// given ids and fails or is slow on request. Otherwise it is a correct engine. Threads: as
// engine.h; script and faults are set by the same thread, or before the engine starts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "libs/synthetic/synthetic_engine.h"

namespace tokenrouter {

struct ScriptedToken {
  TokenId id = 0;
  float entropy = 0.1f;
  float max_probability = 0.95f;
  float margin = 0.9f;
  float logprob = -0.05f;
};

class FakeEngine : public SyntheticEngine {
 public:
  // `wait` is called with the time of a slow step; by default nothing waits.
  explicit FakeEngine(
      const SyntheticEngineOptions& options,
      std::function<void(absl::Duration)> wait = [](absl::Duration) {});

  // After `ids`, and as long as the script is followed, the model generates `tokens` one by one,
  // independently of the sampling. A sequence that leaves the script gets hash tokens.
  void Script(std::span<const TokenId> ids, std::span<const ScriptedToken> tokens);
  // The n-th call of Step from now (1: the next one) takes nothing and returns `status`.
  void FailStep(int64_t n, absl::Status status);
  // Every call from now on takes nothing and returns `status`; OkStatus ends it.
  void FailAllSteps(absl::Status status) { all_steps_ = std::move(status); }
  // The n-th call of Step from now waits for this time before it returns.
  void SlowStep(int64_t n, absl::Duration time);

  // Calls of Step so far, failed ones included.
  int64_t steps() const { return steps_; }

  absl::Status Step(const StepBatch& batch, StepResult* result) override;

 protected:
  absl::StatusOr<Choice> Next(uint64_t history, Position length, const SamplingContext& context,
                              const absl::flat_hash_map<TokenId, int32_t>& counts,
                              const SignalRequest& signals) override;

 private:
  std::function<void(absl::Duration)> wait_;
  absl::flat_hash_map<uint64_t, ScriptedToken> script_;  // By the hash of the ids before.
  std::map<int64_t, absl::Status> failures_;             // By number of the step.
  std::map<int64_t, absl::Duration> slow_;
  absl::Status all_steps_;
  int64_t steps_ = 0;
};

}  // namespace tokenrouter
