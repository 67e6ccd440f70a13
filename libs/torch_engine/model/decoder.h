// The forward pass of the llama family (llama, qwen2, qwen3): pre-norm layers of rotary
// grouped-query attention and a gated feed-forward network. It is independent of the device:
// everything runs through Ops.
// Ownership: owns weights and activations; the device must outlive it. Threads: the engine's
// thread. Units: rows of activations are tokens of the step; a choice is a position whose logits
// are wanted.
// Errors: only Create fails (RESOURCE_EXHAUSTED); steps were validated by the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/tokens/token_types.h"
#include "libs/torch_engine/model/decoder_weights.h"
#include "libs/torch_engine/model/ops.h"
#include "libs/torch_engine/model/step_layout.h"
#include "libs/weights/description/model_description.h"

namespace tokenrouter {

AttentionShape AttentionShapeOf(const ModelDescription& model);
// The widest input of any matrix.
int64_t WidestInput(const ModelDescription& model);

class Decoder {
 public:
  static absl::StatusOr<std::unique_ptr<Decoder>> Create(const ModelDescription& model,
                                                         DecoderWeights weights, int64_t max_tokens,
                                                         Ops* ops);

  // Extends the KV of every run by its tokens, whose ids are `ids` in row order, and keeps the last
  // hidden states of the last choices[i] tokens of run i. REQUIRES: layout.tokens is ids.size() and
  // at most max_tokens.
  void Forward(const StepLayout& layout, std::span<const TokenId> ids,
               std::span<const int> choices);
  // Logits {count, output rows} of choices [first, first + count) of the last Forward, numbered in
  // row order.
  void Logits(int64_t first, int64_t count, float* logits);

 private:
  Decoder(const ModelDescription& model, DecoderWeights weights, Ops* ops);
  absl::Status Allocate(int64_t max_tokens);
  // Fills kept_rows_ and kept_layout_.
  void KeepChoices(const StepLayout& layout, std::span<const int> choices);
  HeadNorms NormsOf(int64_t layer) const;
  // The part of a layer behind its KV, for the rows that `layout` holds.
  void FinishLayer(const StepLayout& layout, int64_t layer);

  const ModelDescription model_;
  const AttentionShape shape_;
  const std::vector<double> frequencies_;
  const double rotary_factor_;
  DecoderWeights weights_;
  Ops* const ops_;

  std::vector<int64_t> kept_rows_;  // Tokens whose logits are wanted.
  StepLayout kept_layout_;          // The same tokens as runs.
  std::unique_ptr<FloatBuffer> cosines_, sines_;
  std::unique_ptr<FloatBuffer> hidden_;  // The residual stream.
  std::unique_ptr<FloatBuffer> normed_;  // Input of the next matrix.
  std::unique_ptr<FloatBuffer> qkv_;
  std::unique_ptr<FloatBuffer> attended_;
  std::unique_ptr<FloatBuffer> projected_;  // What a block adds to the residual stream.
  std::unique_ptr<FloatBuffer> gate_up_;
  std::unique_ptr<FloatBuffer> activated_;
};

}  // namespace tokenrouter
