// SafetensorsFolder is all the weights of a Hugging Face folder: `model.safetensors`, or the shards
// that `model.safetensors.index.json` lists.
// Ownership: owns the mapped shards; tensor views live as long as it does.
// Threads: immutable after Open.
// Errors: those of SafetensorsFile and ParseSafetensorsIndex; NOT_FOUND for a missing folder, shard
// or tensor of the index, naming the file that asks for it and the tensor.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/weights/hugging_face/safetensors_file.h"

namespace tokenrouter {

class SafetensorsFolder {
 public:
  static absl::StatusOr<std::unique_ptr<SafetensorsFolder>> Open(const std::string& folder);

  // In name order.
  const std::vector<std::unique_ptr<SafetensorsFile>>& shards() const { return shards_; }
  // Null when no shard has the tensor.
  const TensorView* FindTensor(const std::string& name) const;
  // The file that holds the tensor; when none does, the one that would list it.
  const std::string& FileOf(const std::string& name) const;

 private:
  SafetensorsFolder() = default;

  std::string listing_;  // The index, or the only file.
  std::vector<std::unique_ptr<SafetensorsFile>> shards_;
  std::map<std::string, const TensorView*> tensors_;
};

}  // namespace tokenrouter
