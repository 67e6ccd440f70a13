#include "libs/weights/model_source.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/weights/file/content_hash.h"
#include "libs/weights/file/dequantize.h"
#include "libs/weights/gguf/gguf_description.h"
#include "libs/weights/hugging_face/hf_description.h"

namespace tokenrouter {
namespace {

// The stored index of row `row` of half-split order when each head's rows alternate between its
// halves.
int64_t InterleavedRow(int64_t row, int64_t head_dim) {
  const int64_t in_head = row % head_dim;
  const int64_t half = in_head / (head_dim / 2);
  const int64_t pair = in_head % (head_dim / 2);
  return row - in_head + 2 * pair + half;
}

bool IsQueryOrKey(TensorRole role) {
  return role == TensorRole::kQuery || role == TensorRole::kKey || role == TensorRole::kQueryBias ||
         role == TensorRole::kKeyBias;
}

void ReadInterleavedVector(const ModelTensor& tensor, std::span<float> out) {
  std::vector<float> stored(out.size());
  DequantizeRow(tensor.type, tensor.bytes, stored);
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t from = InterleavedRow(static_cast<int64_t>(i), tensor.interleaved_head_dim);
    out[i] = stored[static_cast<size_t>(from)];
  }
}

// Adds a small file of the folder; one that does not exist counts as empty.
void AddFile(const std::string& path, ContentHash& hash) {
  const auto file = MappedFile::Open(path);
  hash.Add(file.ok() ? (*file)->bytes() : std::span<const std::byte>());
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelSource>> ModelSource::Open(const std::string& path) {
  std::unique_ptr<ModelSource> source(new ModelSource(path));
  TR_RETURN_IF_ERROR(source->OpenFiles());
  TR_RETURN_IF_ERROR(source->CheckTensors());
  return source;
}

absl::Status ModelSource::OpenFiles() {
  std::error_code error;
  if (std::filesystem::is_directory(path_, error)) {
    TR_ASSIGN_OR_RETURN(description_, DescribeHfFolder(path_));
    TR_ASSIGN_OR_RETURN(folder_, SafetensorsFolder::Open(path_));
    return absl::OkStatus();
  }
  TR_ASSIGN_OR_RETURN(gguf_, GgufFile::Open(path_));
  TR_ASSIGN_OR_RETURN(description_, DescribeGguf(*gguf_));
  return absl::OkStatus();
}

absl::Status ModelSource::CheckTensors() const {
  for (const TensorRole role : RolesOf(description_)) {
    const int64_t count = IsLayerRole(role) ? description_.layers : 1;
    for (int64_t layer = 0; layer < count; ++layer) {
      TR_RETURN_IF_ERROR(Tensor(role, layer).status());
    }
  }
  return absl::OkStatus();
}

const std::string& ModelSource::FileOf(const std::string& tensor) const {
  return folder_ != nullptr ? folder_->FileOf(tensor) : path_;
}

absl::StatusOr<ModelTensor> ModelSource::Tensor(TensorRole role, int64_t layer) const {
  if (IsLayerRole(role) && (layer < 0 || layer >= description_.layers)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": asked for layer ", layer, " of ", description_.layers));
  }
  if (role == TensorRole::kOutput && description_.tied_embeddings) {
    role = TensorRole::kTokenEmbedding;
  }
  const std::string name =
      gguf_ != nullptr ? GgufTensorName(role, layer) : HfTensorName(role, layer);
  const TensorView* view = gguf_ != nullptr ? gguf_->FindTensor(name) : folder_->FindTensor(name);
  if (view == nullptr) {
    return absl::NotFoundError(absl::StrCat(FileOf(name), ": no tensor '", name, "'"));
  }
  const std::vector<int64_t> expected = ExpectedShape(role, description_);
  if (view->shape != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(FileOf(name), ": tensor '", name, "' has shape ", ShapeText(view->shape),
                     ", the model's description asks for ", ShapeText(expected)));
  }
  ModelTensor tensor{view->name, view->type, view->shape, view->bytes, 0};
  const bool interleaved = gguf_ != nullptr && description_.architecture == Architecture::kLlama;
  if (interleaved && IsQueryOrKey(role)) tensor.interleaved_head_dim = description_.head_dim;
  return tensor;
}

void ModelSource::ReadRows(const ModelTensor& tensor, int64_t first_row, int64_t row_count,
                           std::span<float> out) {
  const auto columns = static_cast<size_t>(tensor.columns());
  TR_CHECK(first_row >= 0 && row_count >= 0 && first_row + row_count <= tensor.rows() &&
           out.size() == static_cast<size_t>(row_count) * columns)
      << "rows " << first_row << " + " << row_count << " of " << tensor.name << " into "
      << out.size() << " values";
  const bool interleaved = tensor.interleaved_head_dim > 0;
  if (interleaved && tensor.shape.size() == 1) {
    if (row_count == 1) ReadInterleavedVector(tensor, out);
    return;
  }
  const size_t row_bytes = tensor.bytes.size() / static_cast<size_t>(tensor.rows());
  for (int64_t i = 0; i < row_count; ++i) {
    const int64_t row = first_row + i;
    const int64_t stored = interleaved ? InterleavedRow(row, tensor.interleaved_head_dim) : row;
    DequantizeRow(tensor.type,
                  tensor.bytes.subspan(static_cast<size_t>(stored) * row_bytes, row_bytes),
                  out.subspan(static_cast<size_t>(i) * columns, columns));
  }
}

std::string ModelSource::WeightFilesIdentity() const {
  if (gguf_ != nullptr) return gguf_->identity();
  std::string identity;
  for (const auto& shard : folder_->shards()) absl::StrAppend(&identity, shard->identity(), "; ");
  return identity;
}

std::vector<std::span<const std::byte>> ModelSource::WeightFiles() const {
  if (gguf_ != nullptr) return {gguf_->bytes()};
  std::vector<std::span<const std::byte>> files;
  for (const auto& shard : folder_->shards()) files.push_back(shard->bytes());
  return files;
}

void ModelSource::DropPages() const {
  if (gguf_ != nullptr) return gguf_->DropPages();
  for (const auto& shard : folder_->shards()) shard->DropPages();
}

std::string ModelSource::ContentFingerprint() const {
  ContentHash hash;
  if (gguf_ != nullptr) {
    hash.Add(gguf_->header());
    hash.AddSamples(gguf_->bytes());
    return hash.Hex();
  }
  for (const char* name : {"config.json", "generation_config.json", "tokenizer.json",
                           "tokenizer_config.json", "chat_template.jinja"}) {
    AddFile(absl::StrCat(path_, "/", name), hash);
  }
  for (const auto& shard : folder_->shards()) {
    hash.Add(shard->header());
    hash.AddSamples(shard->bytes());
  }
  return hash.Hex();
}

}  // namespace tokenrouter
