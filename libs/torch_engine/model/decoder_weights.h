// The weights of a llama-like decoder on a device. Loading streams rows from the source into the
// device's own form: queries, keys and values become one matrix, gate and up another.
// Ownership: owns the device's matrices; `embedding` reads from the source, which must outlive it.
// Threads: plain values; loading uses the device's own.
// Errors: those of ModelSource and of Ops::Pack, with the tensor's role.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/torch_engine/model/ops.h"
#include "libs/torch_engine/model/weight_rows.h"
#include "libs/weights/model_source.h"

namespace tokenrouter {

struct DecoderLayer {
  std::unique_ptr<FloatBuffer> attention_norm;
  std::unique_ptr<Matrix> qkv;
  std::unique_ptr<FloatBuffer> query_norm, key_norm;  // Null where the model has none.
  std::unique_ptr<Matrix> attention_output;
  std::unique_ptr<FloatBuffer> feed_forward_norm;
  std::unique_ptr<Matrix> gate_up;
  std::unique_ptr<Matrix> down;
};

struct DecoderWeights {
  WeightRows embedding;  // Looked up row by row, never packed.
  std::vector<DecoderLayer> layers;
  std::unique_ptr<FloatBuffer> output_norm;
  std::unique_ptr<Matrix> output;
};

// Values of all matrices with `output_rows` rows of the output matrix.
int64_t MatrixValues(const ModelDescription& model, int64_t output_rows);

// Weights packed so far and in all.
using LoadProgress = std::function<void(int64_t done, int64_t total)>;

// Packs the output matrix's first `output_rows` rows. `progress` may be empty.
absl::StatusOr<DecoderWeights> LoadDecoderWeights(const ModelSource& source, int64_t output_rows,
                                                  const LoadProgress& progress, Ops* ops);

}  // namespace tokenrouter
