// ModelDescription is everything about a model that is not weights: its architecture and sizes as
// an engine needs them, from whichever source format.
// Ownership: plain values. Threads: plain values.
// Units: counts of layers, channels, heads, rows and tokens. An id of -1 means the model has none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libs/weights/description/rope_frequencies.h"

namespace tokenrouter {

enum class Architecture { kLlama, kQwen2, kQwen3 };

std::string ArchitectureName(Architecture architecture);

struct ModelDescription {
  std::string name;
  Architecture architecture = Architecture::kLlama;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab_rows = 0;      // Rows of the embedding table, padding included.
  int64_t context_length = 0;  // Most positions the model was made for.
  int64_t sliding_window = 0;  // A token sees only this many last ones, itself included; 0: all.
  double rms_epsilon = 1e-6;
  RopeDescription rope;
  bool tied_embeddings = false;  // The output matrix is the embedding table.
  bool qkv_bias = false;
  bool output_bias = false;  // Bias after the attention's output projection.
  bool qk_norm = false;      // RMS norm of each query and key head, before rotary.
  int64_t bos_id = -1;
  int64_t pad_id = -1;
  std::vector<int64_t> eos_ids;  // Every id that ends an answer, the main one first; may be empty.
};

inline constexpr int64_t kMaxLayers = 1024;
inline constexpr int64_t kMaxHidden = 1 << 18;
inline constexpr int64_t kMaxVocabRows = 1 << 22;
inline constexpr int64_t kMaxContextLength = int64_t{1} << 28;

// What a rotary theta and scaling factor may be; beyond, frequencies are no sensible numbers.
inline constexpr double kMinRopeTheta = 2;
inline constexpr double kMaxRopeTheta = 1e15;
inline constexpr double kMinRopeFactor = 1e-6;
inline constexpr double kMaxRopeFactor = 1e6;

// Checks ranges and the relations between sizes. INVALID_ARGUMENT "<where>: <what> is <value>,
// <allowed>".
absl::Status ValidateDescription(const ModelDescription& model, const std::string& where);

}  // namespace tokenrouter
