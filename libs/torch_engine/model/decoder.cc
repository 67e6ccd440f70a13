#include "libs/torch_engine/model/decoder.h"

#include <algorithm>
#include <utility>

#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/weights/description/rope_frequencies.h"

namespace tokenrouter {

AttentionShape AttentionShapeOf(const ModelDescription& model) {
  return {.layers = model.layers,
          .heads = model.heads,
          .kv_heads = model.kv_heads,
          .head_dim = model.head_dim,
          .rotary_dim = model.rope.dim,
          .window = model.sliding_window};
}

int64_t WidestInput(const ModelDescription& model) {
  return std::max({model.hidden, model.heads * model.head_dim, model.intermediate});
}

absl::StatusOr<std::unique_ptr<Decoder>> Decoder::Create(const ModelDescription& model,
                                                         DecoderWeights weights, int64_t max_tokens,
                                                         Ops* ops) {
  std::unique_ptr<Decoder> decoder(new Decoder(model, std::move(weights), ops));
  TR_RETURN_IF_ERROR(decoder->Allocate(max_tokens));
  return decoder;
}

Decoder::Decoder(const ModelDescription& model, DecoderWeights weights, Ops* ops)
    : model_(model),
      shape_(AttentionShapeOf(model)),
      frequencies_(RopeFrequencies(model.rope)),
      rotary_factor_(RopeAttentionFactor(model.rope)),
      weights_(std::move(weights)),
      ops_(ops) {}

absl::Status Decoder::Allocate(int64_t max_tokens) {
  const auto angles = static_cast<int64_t>(frequencies_.size());
  const std::pair<std::unique_ptr<FloatBuffer>*, int64_t> buffers[] = {
      {&cosines_, angles},
      {&sines_, angles},
      {&hidden_, model_.hidden},
      {&normed_, model_.hidden},
      {&qkv_, shape_.qkv_floats()},
      {&attended_, shape_.query_floats()},
      {&projected_, model_.hidden},
      {&gate_up_, 2 * model_.intermediate},
      {&activated_, model_.intermediate}};
  for (const auto& [buffer, width] : buffers) {
    TR_ASSIGN_OR_RETURN(*buffer, ops_->AllocateFloats(max_tokens * width));
  }
  return absl::OkStatus();
}

void Decoder::KeepChoices(const StepLayout& layout, std::span<const int> choices) {
  kept_rows_.clear();
  kept_layout_.Clear();
  for (size_t i = 0; i < layout.runs.size(); ++i) {
    if (choices[i] == 0) continue;
    TokenRun run = layout.runs[i];
    const int32_t dropped = run.tokens - choices[i];
    for (int32_t t = dropped; t < run.tokens; ++t) kept_rows_.push_back(run.first_token + t);
    run.first += dropped;
    run.tokens = choices[i];
    run.first_token = kept_layout_.tokens;
    kept_layout_.tokens += run.tokens;
    kept_layout_.runs.push_back(run);
  }
}

void Decoder::Forward(const StepLayout& layout, std::span<const TokenId> ids,
                      std::span<const int> choices) {
  TR_CHECK(layout.tokens == static_cast<int64_t>(ids.size()));
  KeepChoices(layout, choices);
  ops_->Embed(weights_.embedding, ids, hidden_->data());
  ops_->RotaryAngles(layout, frequencies_, rotary_factor_, cosines_->data(), sines_->data());
  ops_->Norm(hidden_->data(), weights_.layers[0].attention_norm->data(), layout.tokens,
             model_.hidden, static_cast<float>(model_.rms_epsilon), normed_->data());
  for (int64_t layer = 0; layer < model_.layers; ++layer) {
    ops_->Multiply(weights_.layers[layer].qkv.get(), normed_->data(), layout.tokens, qkv_->data());
    ops_->RotateAndStore(layout, layer, NormsOf(layer), cosines_->data(), sines_->data(),
                         qkv_->data());
    if (layer + 1 < model_.layers) {
      FinishLayer(layout, layer);
    } else if (!kept_rows_.empty()) {
      // The last layer's results for the other tokens are not used.
      ops_->KeepRows(kept_rows_, shape_.qkv_floats(), qkv_->data());
      ops_->KeepRows(kept_rows_, model_.hidden, hidden_->data());
      FinishLayer(kept_layout_, layer);
    }
  }
}

HeadNorms Decoder::NormsOf(int64_t layer) const {
  if (!model_.qk_norm) return {};
  const DecoderLayer& weights = weights_.layers[layer];
  return {.query = weights.query_norm->data(),
          .key = weights.key_norm->data(),
          .epsilon = static_cast<float>(model_.rms_epsilon)};
}

void Decoder::FinishLayer(const StepLayout& layout, int64_t layer) {
  const DecoderLayer& weights = weights_.layers[layer];
  const int64_t rows = layout.tokens;
  const auto epsilon = static_cast<float>(model_.rms_epsilon);
  ops_->Attend(layout, layer, qkv_->data(), attended_->data());
  ops_->Multiply(weights.attention_output.get(), attended_->data(), rows, projected_->data());
  ops_->AddNorm(hidden_->data(), projected_->data(), weights.feed_forward_norm->data(), rows,
                model_.hidden, epsilon, normed_->data());
  ops_->Multiply(weights.gate_up.get(), normed_->data(), rows, gate_up_->data());
  ops_->SwiGlu(gate_up_->data(), rows, model_.intermediate, activated_->data());
  ops_->Multiply(weights.down.get(), activated_->data(), rows, projected_->data());
  FloatBuffer& next_norm = layer + 1 < model_.layers ? *weights_.layers[layer + 1].attention_norm
                                                     : *weights_.output_norm;
  ops_->AddNorm(hidden_->data(), projected_->data(), next_norm.data(), rows, model_.hidden, epsilon,
                normed_->data());
}

void Decoder::Logits(int64_t first, int64_t count, float* logits) {
  TR_CHECK(first >= 0 && first + count <= kept_layout_.tokens);
  ops_->Multiply(weights_.output.get(), normed_->data() + first * model_.hidden, count, logits);
}

}  // namespace tokenrouter
