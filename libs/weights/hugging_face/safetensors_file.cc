#include "libs/weights/hugging_face/safetensors_file.h"

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/file/json_fields.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr size_t kLengthBytes = 8;

absl::Status TensorError(const std::string& path, const std::string& name,
                         const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": tensor '", name, "' ", what));
}

std::optional<TensorType> TypeOfName(const std::string& name) {
  if (name == "F32") return TensorType::kF32;
  if (name == "F16") return TensorType::kF16;
  if (name == "BF16") return TensorType::kBF16;
  return std::nullopt;
}

absl::StatusOr<TensorView> ReadTensor(const std::string& name, const json::value& entry,
                                      std::span<const std::byte> data, const std::string& path) {
  const json::object* fields = entry.if_object();
  if (fields == nullptr) return TensorError(path, name, "is not described by a JSON object");
  const std::string where = absl::StrCat(path, ": tensor '", name, "'");
  TensorView tensor;
  tensor.name = name;
  TR_ASSIGN_OR_RETURN(const std::string type_name, JsonString(*fields, "dtype", where));
  const std::optional<TensorType> type = TypeOfName(type_name);
  if (!type) {
    return TensorError(path, name,
                       absl::StrCat("has type ", type_name, "; supported are F32, F16, BF16"));
  }
  tensor.type = *type;
  TR_ASSIGN_OR_RETURN(tensor.shape, JsonInts(*fields, "shape", where));
  if (tensor.shape.size() > kMaxSafetensorsDimensions) {
    return TensorError(path, name,
                       absl::StrCat("has ", tensor.shape.size(), " dimensions, the limit is ",
                                    kMaxSafetensorsDimensions));
  }
  const std::optional<int64_t> size = TensorBytes(tensor.type, tensor.shape);
  if (!size) {
    return TensorError(path, name,
                       absl::StrCat("has shape ", ShapeText(tensor.shape),
                                    ", every dimension must be positive and their product fit"));
  }
  TR_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, JsonInts(*fields, "data_offsets", where));
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] ||
      offsets[1] - offsets[0] != *size) {
    return TensorError(path, name,
                       absl::StrCat("has data_offsets ", ShapeText(offsets), " but needs ", *size,
                                    " bytes for shape ", ShapeText(tensor.shape)));
  }
  if (static_cast<uint64_t>(offsets[1]) > data.size()) {
    return TensorError(
        path, name,
        absl::StrCat("ends at byte ", offsets[1], " of the data section, the file has ",
                     data.size(), " (truncated download?)"));
  }
  tensor.bytes = data.subspan(static_cast<size_t>(offsets[0]), static_cast<size_t>(*size));
  return tensor;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(const std::string& path) {
  TR_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> mapped, MappedFile::Open(path));
  TR_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file, Parse(mapped->bytes(), path));
  file->file_ = std::move(mapped);
  return file;
}

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Parse(
    std::span<const std::byte> bytes, const std::string& path) {
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile(bytes, path));
  TR_RETURN_IF_ERROR(file->ParseHeader());
  return file;
}

absl::Status SafetensorsFile::ParseHeader() {
  if (bytes_.size() < kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": truncated: ", bytes_.size(),
                                                   " bytes, a safetensors file has at least 8"));
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes_.data(), sizeof(length));
  if (length > kMaxSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": header of ", length, " bytes, the limit is ",
                     kMaxSafetensorsHeaderBytes, " (is this a safetensors file?)"));
  }
  if (length > bytes_.size() - kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": truncated: header of ", length,
                                                   " bytes in a file of ", bytes_.size()));
  }
  header_bytes_ = kLengthBytes + static_cast<size_t>(length);
  TR_ASSIGN_OR_RETURN(const json::object header,
                      ParseJsonObject(bytes_.subspan(kLengthBytes, length), path_));
  const std::span<const std::byte> data = bytes_.subspan(header_bytes_);
  for (const auto& entry : header) {
    const std::string name(entry.key().data(), entry.key().size());
    if (name == "__metadata__") continue;
    TR_ASSIGN_OR_RETURN(TensorView tensor, ReadTensor(name, entry.value(), data, path_));
    tensors_.emplace(name, std::move(tensor));
  }
  return absl::OkStatus();
}

const TensorView* SafetensorsFile::FindTensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace tokenrouter
