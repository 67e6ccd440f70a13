// Writes seeded random models, small enough for any test, in both source formats.
//
// All formats of one spec hold exactly the same values: each is rounded so that F32, BF16 and F16
// represent it. The values depend on spec and seed alone, on every machine. The weights are scaled
// so that greedy text is not constant and the entropy of the next token varies widely between
// positions. Padding rows (ids >= kTinyTokenizerSize) have large logits, so that code which forgets
// to mask them fails.
// Ownership: writes files and keeps nothing. Threads: pure but for the files.
// Errors: INVALID_ARGUMENT for a spec out of range, UNAVAILABLE when a file cannot be written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libs/weights/description/model_description.h"
#include "libs/weights/description/tensor_names.h"

namespace tokenrouter {

struct TinyModelSpec {
  Architecture architecture = Architecture::kLlama;
  int64_t layers = 2;
  int64_t hidden = 64;  // A multiple of 64.
  int64_t intermediate = 128;
  int64_t heads = 2;
  int64_t kv_heads = 1;
  int64_t head_dim = 0;      // 0: hidden / heads.
  int64_t vocab_rows = 320;  // At least kTinyTokenizerSize.
  int64_t context_length = 2048;
  int64_t sliding_window = 0;  // Not 0: a Mistral model.
  RopeDescription rope;        // Its dimension follows from the heads.
  bool tied_embeddings = false;
  uint64_t seed = 1;
};

// The two models of a test pair: one tokenizer, different sizes and, by the seed's use, values.
TinyModelSpec TinySmall(Architecture architecture, uint64_t seed);
TinyModelSpec TinyLarge(Architecture architecture, uint64_t seed);

enum class TinyFormat { kFolderF32, kFolderBf16, kGgufF32, kGgufF16 };

// `path` becomes a folder (created when absent) or a .gguf file. Existing files are replaced.
absl::Status WriteTinyModel(const TinyModelSpec& spec, TinyFormat format, const std::string& path);

// Both models of a qwen2 pair as F32 folders, `root`small and `root`large, always the same values.
absl::Status WriteTinyPair(const std::string& root);

// The tensors that the writers below write.
struct TinyTensor {
  TensorRole role = TensorRole::kTokenEmbedding;
  int64_t layer = 0;
  std::vector<int64_t> shape;
  std::vector<float> values;  // Rows of queries and keys in half-split order.
};

// INVALID_ARGUMENT for a spec out of range.
absl::Status CheckTinySpec(const TinyModelSpec& spec);
ModelDescription DescribeTiny(const TinyModelSpec& spec);
std::vector<TinyTensor> TinyTensors(const TinyModelSpec& spec);

// The bytes of values as F32, or their upper halves as BF16.
std::string EncodeF32(const std::vector<float>& values);
std::string EncodeBf16(const std::vector<float>& values);
// Exact for the values of TinyTensors.
std::string EncodeF16(const std::vector<float>& values);

// One per format; WriteTinyModel chooses.
absl::Status WriteTinyFolder(const TinyModelSpec& spec, bool bf16, const std::string& folder);
absl::Status WriteTinyGguf(const TinyModelSpec& spec, bool f16, const std::string& path);
absl::Status WriteTinyFile(const std::string& path, const std::string& content);

}  // namespace tokenrouter
