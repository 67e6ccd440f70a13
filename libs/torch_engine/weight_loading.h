// Loads a model's weights onto the CPU: from the cache of packed weights where it has them, else by
// packing them and keeping the result there.
// Ownership: nothing is kept; the mapped file goes to `ops`. Threads: the creating one, with
// `pool`. Units: bytes. Errors: those of LoadDecoderWeights; the cache never fails a load
// (packed_cache.h).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "libs/torch_engine/cpu/cpu_ops.h"
#include "libs/torch_engine/cpu/thread_pool.h"
#include "libs/torch_engine/model/decoder_weights.h"
#include "libs/torch_engine/model/weight_format.h"
#include "libs/weights/model_source.h"

namespace tokenrouter {

// Of the packed matrices, about.
int64_t PackedWeightBytes(const ModelDescription& model, int64_t output_rows, WeightFormat format);

struct WeightLoading {
  WeightFormat format = WeightFormat::kInt8;
  int64_t output_rows = 0;
  std::string cache_folder;  // Empty: no cache.
  int64_t cache_bytes = 0;   // Most bytes of that folder.
  LoadProgress progress;     // May be empty.
};

absl::StatusOr<DecoderWeights> LoadWeights(const ModelSource& source, const WeightLoading& loading,
                                           CpuOps* ops, ThreadPool* pool);

}  // namespace tokenrouter
