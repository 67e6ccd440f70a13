// The tensors of a decoder by role, what GGUF and Hugging Face files call them, and the shape the
// description asks of each.
// Ownership: plain values. Threads: pure functions.
// Units: `layer` counts from 0 and is ignored for the three roles outside the layers. Shapes are
// row-major: a projection is {output channels, input channels}.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libs/weights/description/model_description.h"

namespace tokenrouter {

enum class TensorRole {
  // Once per model.
  kTokenEmbedding,
  kOutputNorm,
  kOutput,
  // Once per layer.
  kAttentionNorm,
  kQuery,
  kKey,
  kValue,
  kQueryBias,
  kKeyBias,
  kValueBias,
  kAttentionOutput,
  kAttentionOutputBias,
  kFeedForwardNorm,
  kGate,
  kUp,
  kDown,
  kQueryNorm,
  kKeyNorm,
};

bool IsLayerRole(TensorRole role);

std::string GgufTensorName(TensorRole role, int64_t layer);
std::string HfTensorName(TensorRole role, int64_t layer);

std::vector<int64_t> ExpectedShape(TensorRole role, const ModelDescription& model);

// Every role the described model has a tensor for, those of a layer listed once. kOutput is among
// them unless the embeddings are tied.
std::vector<TensorRole> RolesOf(const ModelDescription& model);

}  // namespace tokenrouter
