// ModelSource opens a model, a .gguf file or a Hugging Face folder, and gives its description and
// its tensors by role. Differences of the formats end here: names, shapes, and the row order of
// queries and keys, which GGUF `llama` files store for interleaved rotary. Consumers always see
// rows for half-split rotary (channel i rotates with channel i + dim/2). Ownership: owns the mapped
// files; tensors point into them and must not outlive the source. Threads: immutable after Open;
// ReadRows may be called from any number of threads at once. Units: rows and values; shapes
// row-major. Errors: NOT_FOUND for a missing file or tensor and INVALID_ARGUMENT for a wrong shape
// or anything unsupported, naming file and tensor. Open checks every tensor, so later calls fail
// only on misuse.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libs/weights/description/model_description.h"
#include "libs/weights/description/tensor_names.h"
#include "libs/weights/file/tensor_view.h"
#include "libs/weights/gguf/gguf_file.h"
#include "libs/weights/hugging_face/safetensors_folder.h"

namespace tokenrouter {

// A tensor of the model. `bytes` are as stored: only ReadRows undoes quantisation and row order.
struct ModelTensor {
  std::string name;  // As the file calls it.
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  // Channels per head when rows are stored interleaved (GGUF llama queries and keys), else 0: then
  // the stored row order is the order ReadRows gives.
  int64_t interleaved_head_dim = 0;

  // A vector is one row.
  int64_t rows() const { return shape.size() < 2 ? 1 : shape[0]; }
  int64_t columns() const { return shape.back(); }
};

class ModelSource {
 public:
  static absl::StatusOr<std::unique_ptr<ModelSource>> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const ModelDescription& description() const { return description_; }

  // `layer` is ignored for roles outside the layers. With tied embeddings kOutput is the embedding
  // table itself. NOT_FOUND for a bias that the model does not have.
  absl::StatusOr<ModelTensor> Tensor(TensorRole role, int64_t layer = 0) const;

  // Dequantizes rows [first_row, first_row + row_count) in half-split order into `out`.
  // REQUIRES: the rows exist and out.size() == row_count * columns (TR_CHECK).
  static void ReadRows(const ModelTensor& tensor, int64_t first_row, int64_t row_count,
                       std::span<float> out);

  // Sixteen hexadecimal digits that differ between different models: a hash of names, metadata,
  // tensor directory and sizes (all bytes) and of the weights (size and 64 samples per file). Reads
  // a few hundred KiB beyond the headers. Equal for equal files wherever they lie.
  std::string ContentFingerprint() const;

  // Of the files that hold the weights: MappedFile::identity of each, and all their bytes.
  std::string WeightFilesIdentity() const;
  std::vector<std::span<const std::byte>> WeightFiles() const;
  // MappedFile::DropPages of each.
  void DropPages() const;

  // Where the tokenizer is: the metadata of this file, or, when null, the folder path().
  const GgufFile* gguf() const { return gguf_.get(); }

 private:
  explicit ModelSource(std::string path) : path_(std::move(path)) {}

  absl::Status OpenFiles();
  // For messages.
  const std::string& FileOf(const std::string& tensor) const;
  absl::Status CheckTensors() const;

  const std::string path_;
  std::unique_ptr<GgufFile> gguf_;  // Exactly one of these two is set.
  std::unique_ptr<SafetensorsFolder> folder_;
  ModelDescription description_;
};

}  // namespace tokenrouter
