// ParallelChoices is the n answers to one prompt: one Generation per choice under one request id,
// distinguished by GenerationSpec.choice, which is also part of the key of every random draw. So
// choice i does not depend on n, and choice 0 is the answer to the same request with n = 1. All
// start at once: on a worker one of them prefills the prompt and the others wait for its KV blocks
// (libs/worker/core/prefix_starter.h), and the scheduler can refuse any of them before the first
// token of the whole request.
// Ownership: owns the generations; dropping it cancels those that have not ended. The first that
// fails ends all: the others are cancelled then. Threads and memory: as n Generations. Units:
// indices are 0..size()-1.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "services/gateway/generation/generation.h"

namespace tokenrouter {

class ParallelChoices {
 public:
  struct ChoiceUpdate {
    int index = 0;
    std::vector<TextPiece> pieces;
    FinishReason reason = FinishReason::kNone;  // Once set, no more of this choice.
  };
  struct Progress {
    std::vector<ChoiceUpdate> news;  // One per choice that has an update, by index.
    bool ended = false;              // Nothing follows.
    absl::Status error;              // With ended: of the choice that failed.
  };

  // REQUIRES: count >= 1. UNAVAILABLE when the port is stopping: then none has started.
  static absl::StatusOr<std::unique_ptr<ParallelChoices>> Start(
      TokenRequest request, int count, const GenerationEnvironment& environment,
      const std::function<void()>& wake);

  // Returns what happened since the last call.
  Progress Poll();
  // Tells the scheduler that the client has received everything that Poll returned so far.
  void Acknowledge();

  int size() const { return static_cast<int>(choices_.size()); }
  // Counts the prompt once, and the tokens of all choices. Cached tokens are those of the prompt
  // that no choice had to compute. REQUIRES: no choice has failed.
  UsageCounts usage() const;

 private:
  struct Choice {
    std::unique_ptr<Generation> generation;
    bool ended = false;
  };

  explicit ParallelChoices(std::vector<Choice> choices) : choices_(std::move(choices)) {}

  std::vector<Choice> choices_;
};

}  // namespace tokenrouter
