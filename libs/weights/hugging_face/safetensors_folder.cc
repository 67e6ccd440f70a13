#include "libs/weights/hugging_face/safetensors_folder.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/file/mapped_file.h"
#include "libs/weights/hugging_face/safetensors_index.h"

namespace tokenrouter {
namespace {

absl::StatusOr<std::map<std::string, std::string>> ReadIndex(const std::string& path) {
  TR_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  return ParseSafetensorsIndex(file->bytes(), path);
}

// Says who asks for a shard that is not there; other errors name the shard and the tensor.
absl::Status ForShard(const absl::Status& status, const std::string& index,
                      const std::string& tensor) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(
      absl::StrCat(status.message(), ", but ", index, " places tensor '", tensor, "' there"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsFolder>> SafetensorsFolder::Open(
    const std::string& folder) {
  std::unique_ptr<SafetensorsFolder> result(new SafetensorsFolder());
  const std::string index_path = absl::StrCat(folder, "/model.safetensors.index.json");
  if (::access(index_path.c_str(), F_OK) != 0) {
    result->listing_ = absl::StrCat(folder, "/model.safetensors");
    TR_ASSIGN_OR_RETURN(auto file, SafetensorsFile::Open(result->listing_));
    for (const auto& [name, tensor] : file->tensors()) result->tensors_[name] = &tensor;
    result->shards_.push_back(std::move(file));
    return result;
  }
  result->listing_ = index_path;
  TR_ASSIGN_OR_RETURN(const auto shard_of, ReadIndex(index_path));
  std::map<std::string, const SafetensorsFile*> files;
  for (const auto& [tensor, shard] : shard_of) {
    const SafetensorsFile*& file = files[shard];
    if (file != nullptr) continue;
    auto opened = SafetensorsFile::Open(absl::StrCat(folder, "/", shard));
    if (!opened.ok()) return ForShard(opened.status(), index_path, tensor);
    file = opened->get();
    result->shards_.push_back(*std::move(opened));
  }
  for (const auto& [name, shard] : shard_of) {
    const TensorView* tensor = files[shard]->FindTensor(name);
    if (tensor == nullptr) {
      return absl::NotFoundError(absl::StrCat(folder, "/", shard, ": no tensor '", name,
                                              "', which the index places there"));
    }
    result->tensors_[name] = tensor;
  }
  return result;
}

const TensorView* SafetensorsFolder::FindTensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second;
}

const std::string& SafetensorsFolder::FileOf(const std::string& name) const {
  const TensorView* tensor = FindTensor(name);
  for (const auto& shard : shards_) {
    if (tensor != nullptr && shard->FindTensor(name) == tensor) return shard->path();
  }
  return listing_;
}

}  // namespace tokenrouter
