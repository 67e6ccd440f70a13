#include "libs/torch_engine/weight_loading.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/torch_engine/numerics_class.h"
#include "libs/weights/packed/packed_cache.h"

namespace tokenrouter {
namespace {

ParallelFor OnPool(ThreadPool* pool) {
  return [pool](int64_t items, const std::function<void(int64_t)>& item) {
    // A piece of a digest is always worth a thread.
    pool->For(items, items * ThreadPool::kOperationsWorthAThread,
              [&item](int64_t i, int) { item(i); });
  };
}

PackedKey KeyOf(const ModelSource& source, const WeightLoading& loading, const CpuOps& ops,
                const ParallelFor& parallel) {
  // The class holds this build's sources, and with them every packed layout.
  return {.engine = absl::StrCat(NumericsClass(ops.PackedName(), source.ContentFingerprint()), " ",
                                 ops.PackedName(), " rows ", loading.output_rows),
          .files = source.WeightFilesIdentity(),
          .content = [&source, parallel] {
            const auto drop_pages = [&source](int64_t, int64_t) { source.DropPages(); };
            std::string content;
            for (const auto file : source.WeightFiles()) {
              absl::StrAppend(&content, HexOf(DigestOfPieces(file, parallel, drop_pages)), ";");
            }
            return content;
          }};
}

}  // namespace

int64_t PackedWeightBytes(const ModelDescription& model, int64_t output_rows, WeightFormat format) {
  const int64_t values = MatrixValues(model, output_rows);
  const int64_t layer_values = MatrixValues(model, 0);
  switch (format) {
    case WeightFormat::kInt8:
      return values;
    case WeightFormat::kInt4:  // Half a byte and a scale per block; the output matrix in int8.
      return layer_values / 2 + layer_values / kInt4Block * 2 + values - layer_values;
    case WeightFormat::kFp32:
      return values * static_cast<int64_t>(sizeof(float));
  }
  return values;
}

absl::StatusOr<DecoderWeights> LoadWeights(const ModelSource& source, const WeightLoading& loading,
                                           CpuOps* ops, ThreadPool* pool) {
  // The pages read of the model are packed now and not needed again.
  const LoadProgress progress = [&](int64_t done, int64_t total) {
    source.DropPages();
    if (loading.progress) loading.progress(done, total);
  };
  if (loading.cache_folder.empty() || loading.format == WeightFormat::kFp32) {
    return LoadDecoderWeights(source, loading.output_rows, progress, ops);
  }
  const PackedCache cache(loading.cache_folder, loading.cache_bytes);
  const ParallelFor parallel = OnPool(pool);
  PackedKey key = KeyOf(source, loading, *ops, parallel);
  auto packed = cache.Load(source.path(), key, parallel, loading.progress);
  if (packed != nullptr) {
    ops->packed_memory()->UseFiles(std::move(packed), nullptr);
    return LoadDecoderWeights(source, loading.output_rows, nullptr, ops);
  }
  const auto writer =
      cache.Begin(source.path(), key,
                  PackedWeightBytes(source.description(), loading.output_rows, loading.format));
  // Before the weights are read: what changes later then looks changed at the next start.
  if (writer != nullptr) key.content = [content = key.content()] { return content; };
  ops->packed_memory()->UseFiles(nullptr, writer.get());
  auto weights = LoadDecoderWeights(source, loading.output_rows, progress, ops);
  const bool complete = ops->packed_memory()->complete();
  ops->packed_memory()->UseFiles(nullptr, nullptr);
  if (weights.ok() && complete) cache.Finish(writer.get(), key, parallel);
  return weights;
}

}  // namespace tokenrouter
