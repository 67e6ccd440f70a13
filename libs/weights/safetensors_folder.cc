#include "libs/weights/safetensors_folder.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/json_fields.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

// The index's tensor -> shard file name.
absl::StatusOr<std::map<std::string, std::string>> ReadIndex(const std::string& path) {
  TR_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  TR_ASSIGN_OR_RETURN(const json::object index, ParseJsonObject(file->bytes(), path));
  const json::value* map = FindJson(index, "weight_map");
  const json::object* weights = map == nullptr ? nullptr : map->if_object();
  if (weights == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no object 'weight_map'"));
  }
  std::map<std::string, std::string> shard_of;
  for (const auto& entry : *weights) {
    const std::string tensor(entry.key().data(), entry.key().size());
    TR_ASSIGN_OR_RETURN(const std::string shard, JsonString(*weights, tensor, path));
    if (shard.empty() || shard.find('/') != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": tensor '", tensor, "' is in '", shard,
                                                     "', expected a file name without '/'"));
    }
    shard_of.emplace(tensor, shard);
  }
  return shard_of;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsFolder>> SafetensorsFolder::Open(
    const std::string& folder) {
  std::unique_ptr<SafetensorsFolder> result(new SafetensorsFolder());
  const std::string index_path = absl::StrCat(folder, "/model.safetensors.index.json");
  if (::access(index_path.c_str(), F_OK) != 0) {
    TR_ASSIGN_OR_RETURN(auto file,
                        SafetensorsFile::Open(absl::StrCat(folder, "/model.safetensors")));
    for (const auto& [name, tensor] : file->tensors()) result->tensors_[name] = &tensor;
    result->shards_.push_back(std::move(file));
    return result;
  }
  TR_ASSIGN_OR_RETURN(const auto shard_of, ReadIndex(index_path));
  std::map<std::string, const SafetensorsFile*> files;
  for (const auto& [tensor, shard] : shard_of) files[shard] = nullptr;
  if (files.size() > kMaxShards) {
    return absl::InvalidArgumentError(absl::StrCat(index_path, ": names ", files.size(),
                                                   " shard files, the limit is ", kMaxShards));
  }
  for (auto& [shard, file] : files) {
    TR_ASSIGN_OR_RETURN(auto opened, SafetensorsFile::Open(absl::StrCat(folder, "/", shard)));
    file = opened.get();
    result->shards_.push_back(std::move(opened));
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

}  // namespace tokenrouter
