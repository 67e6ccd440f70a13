// ParallelChoices is the n answers to one prompt: one Generation per choice under one request id,
// told apart by GenerationSpec.choice, which is also part of the key of every random draw. So
// choice i does not depend on n, and choice 0 is what the request alone would have said. All start
// at once: workers let one of them read the prompt and the others wait for its blocks
// (libs/worker/core/prefix_starter.h), and the scheduler can refuse any of them before the first
// token of all.
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
    std::vector<ChoiceUpdate> news;  // Of choices that have some, by index.
    bool ended = false;              // Nothing follows.
    absl::Status error;              // With ended: of the choice that failed.
  };

  // REQUIRES: count >= 1. UNAVAILABLE when the port is stopping: then none has started.
  static absl::StatusOr<std::unique_ptr<ParallelChoices>> Start(
      TokenRequest request, int count, const GenerationEnvironment& environment,
      const std::function<void()>& wake);

  // What happened since the last call.
  Progress Poll();
  // Everything that Poll returned so far has been given to the client, or had nothing to give.
  void Acknowledge();

  int size() const { return static_cast<int>(choices_.size()); }
  // The prompt once, and the tokens of all choices. Cached are the ids of the prompt that no choice
  // had to read. REQUIRES: no choice has failed.
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
