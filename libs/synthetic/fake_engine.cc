#include "libs/synthetic/fake_engine.h"

#include <algorithm>
#include <utility>

#include "libs/status/check.h"

namespace tokenrouter {

FakeEngine::FakeEngine(const SyntheticEngineOptions& options,
                       std::function<void(absl::Duration)> wait)
    : SyntheticEngine(options), wait_(std::move(wait)) {}

void FakeEngine::Script(std::span<const TokenId> ids, std::span<const ScriptedToken> tokens) {
  HashHistory history;
  history.Append(ids);
  for (const ScriptedToken& token : tokens) {
    script_[history.At(history.length())] = token;
    history.Append({&token.id, 1});
  }
}

void FakeEngine::FailStep(int64_t n, absl::Status status) {
  TR_CHECK(n >= 1 && !status.ok());
  failures_[steps_ + n] = std::move(status);
}

void FakeEngine::SlowStep(int64_t n, absl::Duration time) {
  TR_CHECK(n >= 1);
  slow_[steps_ + n] = time;
}

absl::Status FakeEngine::Step(const StepBatch& batch, StepResult* result) {
  ++steps_;
  if (const auto slow = slow_.find(steps_); slow != slow_.end()) {
    wait_(slow->second);
    slow_.erase(slow);
  }
  if (const auto failure = failures_.find(steps_); failure != failures_.end()) {
    const absl::Status status = std::move(failure->second);
    failures_.erase(failure);
    return status;
  }
  if (!all_steps_.ok()) return all_steps_;
  return SyntheticEngine::Step(batch, result);
}

absl::StatusOr<Choice> FakeEngine::Next(uint64_t history, Position length,
                                        const SamplingContext& context,
                                        const absl::flat_hash_map<TokenId, int32_t>& counts,
                                        const SignalRequest& signals) {
  const auto it = script_.find(history);
  if (it == script_.end()) return SyntheticEngine::Next(history, length, context, counts, signals);
  const ScriptedToken& token = it->second;
  Choice choice{.id = token.id, .logprob = token.logprob};
  choice.signals.entropy = token.entropy;
  if (signals.max_probability) choice.signals.max_probability = token.max_probability;
  if (signals.margin) choice.signals.margin = token.margin;
  if (signals.top_logits > 0) choice.signals.top_logits = {{token.id, 0.0f}};
  return choice;
}

}  // namespace tokenrouter
