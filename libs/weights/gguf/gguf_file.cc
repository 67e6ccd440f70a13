#include "libs/weights/gguf/gguf_file.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr int64_t kDefaultAlignment = 32;
constexpr int64_t kMaxAlignment = 1 << 20;

std::optional<TensorType> TypeOfTag(uint32_t tag) {
  switch (tag) {
    case 0:
      return TensorType::kF32;
    case 1:
      return TensorType::kF16;
    case 2:
      return TensorType::kQ4_0;
    case 3:
      return TensorType::kQ4_1;
    case 6:
      return TensorType::kQ5_0;
    case 7:
      return TensorType::kQ5_1;
    case 8:
      return TensorType::kQ8_0;
    case 12:
      return TensorType::kQ4_K;
    case 13:
      return TensorType::kQ5_K;
    case 14:
      return TensorType::kQ6_K;
    case 30:
      return TensorType::kBF16;
    default:
      return std::nullopt;
  }
}

absl::Status CheckCount(const std::string& path, const char* what, uint64_t count, uint64_t limit) {
  if (count <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": header declares ", count, " ", what, ", the limit is ", limit));
}

absl::Status TensorError(const std::string& path, const std::string& name,
                         const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": tensor '", name, "' ", what));
}

absl::StatusOr<std::vector<int64_t>> ReadShape(GgufCursor& cursor, const std::string& name) {
  const std::string what = absl::StrCat("shape of tensor '", name, "'");
  TR_ASSIGN_OR_RETURN(const uint32_t dimensions, cursor.Read<uint32_t>(what));
  if (dimensions < 1 || dimensions > kMaxGgufDimensions) {
    return TensorError(
        cursor.path(), name,
        absl::StrCat("has ", dimensions, " dimensions, allowed are 1 to ", kMaxGgufDimensions));
  }
  std::vector<int64_t> shape(dimensions);
  // The format stores the innermost dimension first.
  for (size_t i = dimensions; i-- > 0;) {
    TR_ASSIGN_OR_RETURN(const uint64_t size, cursor.Read<uint64_t>(what));
    if (size == 0 || size > (uint64_t{1} << 40)) {
      return TensorError(cursor.path(), name,
                         absl::StrCat("has a dimension of ", size, ", allowed are 1 to 2^40"));
    }
    shape[i] = static_cast<int64_t>(size);
  }
  return shape;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(const std::string& path) {
  TR_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> mapped, MappedFile::Open(path));
  TR_ASSIGN_OR_RETURN(std::unique_ptr<GgufFile> file, Parse(mapped->bytes(), path));
  file->file_ = std::move(mapped);
  return file;
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Parse(std::span<const std::byte> bytes,
                                                          const std::string& path) {
  std::unique_ptr<GgufFile> file(new GgufFile(bytes, path));
  TR_RETURN_IF_ERROR(file->ParseAll());
  return file;
}

absl::Status GgufFile::ParseAll() {
  GgufCursor cursor(bytes_, path_);
  TR_ASSIGN_OR_RETURN(const uint32_t magic, cursor.Read<uint32_t>("magic"));
  if (magic != kMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": not a GGUF file (it does not start with 'GGUF')"));
  }
  TR_ASSIGN_OR_RETURN(version_, cursor.Read<uint32_t>("version"));
  if (version_ != 2 && version_ != 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": GGUF version ", version_, " is not supported, only 2 and 3 in little-endian"));
  }
  TR_ASSIGN_OR_RETURN(const uint64_t tensors, cursor.Read<uint64_t>("tensor count"));
  TR_ASSIGN_OR_RETURN(const uint64_t keys, cursor.Read<uint64_t>("metadata count"));
  TR_RETURN_IF_ERROR(CheckCount(path_, "tensors", tensors, kMaxGgufTensors));
  TR_RETURN_IF_ERROR(CheckCount(path_, "metadata keys", keys, kMaxGgufMetadataKeys));
  TR_RETURN_IF_ERROR(ParseMetadata(cursor, keys));
  Offsets offsets;
  TR_RETURN_IF_ERROR(ParseDirectory(cursor, tensors, offsets));
  header_bytes_ = cursor.offset();
  return PlaceTensors(cursor.offset(), offsets);
}

absl::Status GgufFile::ParseMetadata(GgufCursor& cursor, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    TR_ASSIGN_OR_RETURN(
        const std::string_view key,
        cursor.ReadString(absl::StrCat("key of metadata entry ", i), kMaxGgufKeyBytes));
    const std::string name(key);
    TR_ASSIGN_OR_RETURN(GgufValue value, ReadGgufValue(cursor, name));
    if (!metadata_.emplace(name, std::move(value)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": metadata '", name, "' appears twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status GgufFile::ParseDirectory(GgufCursor& cursor, uint64_t count, Offsets& offsets) {
  for (uint64_t i = 0; i < count; ++i) {
    TR_ASSIGN_OR_RETURN(
        const std::string_view text,
        cursor.ReadString(absl::StrCat("name of tensor ", i), kMaxGgufTensorNameBytes));
    TensorView tensor;
    tensor.name = std::string(text);
    TR_ASSIGN_OR_RETURN(tensor.shape, ReadShape(cursor, tensor.name));
    TR_ASSIGN_OR_RETURN(const uint32_t tag,
                        cursor.Read<uint32_t>(absl::StrCat("type of tensor '", tensor.name, "'")));
    TR_ASSIGN_OR_RETURN(const uint64_t offset, cursor.Read<uint64_t>(absl::StrCat(
                                                   "offset of tensor '", tensor.name, "'")));
    const std::optional<TensorType> type = TypeOfTag(tag);
    if (!type) {
      return TensorError(
          path_, tensor.name,
          absl::StrCat("has GGML type ", tag, "; supported are ", SupportedTensorTypes()));
    }
    tensor.type = *type;
    if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
      return TensorError(path_, tensor.name, "appears twice");
    }
    offsets.push_back(offset);
    tensors_.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> GgufFile::Alignment() const {
  TR_ASSIGN_OR_RETURN(const int64_t alignment, GetIntOr("general.alignment", kDefaultAlignment));
  if (alignment < 8 || alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": metadata 'general.alignment' is ", alignment,
                     ", allowed are powers of two from 8 to ", kMaxAlignment));
  }
  return static_cast<uint64_t>(alignment);
}

absl::Status GgufFile::PlaceTensors(size_t directory_end, const Offsets& offsets) {
  TR_ASSIGN_OR_RETURN(const uint64_t alignment, Alignment());
  if (tensors_.empty()) return absl::OkStatus();
  const uint64_t data_start = (directory_end + alignment - 1) / alignment * alignment;
  const uint64_t data_bytes = data_start < bytes_.size() ? bytes_.size() - data_start : 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    TensorView& tensor = tensors_[i];
    const uint64_t offset = offsets[i];
    if (offset % alignment != 0) {
      return TensorError(path_, tensor.name,
                         absl::StrCat("starts at offset ", offset,
                                      ", which is not a multiple of the alignment ", alignment));
    }
    const std::optional<int64_t> size = TensorBytes(tensor.type, tensor.shape);
    if (!size) {
      return TensorError(path_, tensor.name,
                         absl::StrCat("has shape ", ShapeText(tensor.shape),
                                      ", too large or no whole number of blocks of ",
                                      LayoutOf(tensor.type).block_values, " values per row"));
    }
    if (offset > data_bytes || static_cast<uint64_t>(*size) > data_bytes - offset) {
      return TensorError(path_, tensor.name,
                         absl::StrCat("needs bytes ", offset, " to ", offset + *size,
                                      " of the data section, the file has ", data_bytes,
                                      " (truncated download?)"));
    }
    tensor.bytes = bytes_.subspan(data_start + offset, static_cast<size_t>(*size));
  }
  return absl::OkStatus();
}

const TensorView* GgufFile::FindTensor(const std::string& name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

template <typename T>
absl::StatusOr<const T*> GgufFile::Find(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) {
    return absl::NotFoundError(absl::StrCat(path_, ": no metadata '", key, "'"));
  }
  if (const T* value = std::get_if<T>(&found->second)) return value;
  return absl::InvalidArgumentError(absl::StrCat(path_, ": metadata '", key, "' is a ",
                                                 GgufValueKind(found->second), ", expected a ",
                                                 GgufValueKind(GgufValue(T()))));
}

absl::StatusOr<std::string> GgufFile::GetString(const std::string& key) const {
  TR_ASSIGN_OR_RETURN(const std::string_view* value, Find<std::string_view>(key));
  return std::string(*value);
}

absl::StatusOr<int64_t> GgufFile::GetInt(const std::string& key) const {
  TR_ASSIGN_OR_RETURN(const int64_t* value, Find<int64_t>(key));
  return *value;
}

absl::StatusOr<double> GgufFile::GetFloat(const std::string& key) const {
  if (const auto integer = Find<int64_t>(key); integer.ok()) return static_cast<double>(**integer);
  TR_ASSIGN_OR_RETURN(const double* value, Find<double>(key));
  return *value;
}

absl::StatusOr<bool> GgufFile::GetBool(const std::string& key) const {
  TR_ASSIGN_OR_RETURN(const bool* value, Find<bool>(key));
  return *value;
}

absl::StatusOr<std::string> GgufFile::GetStringOr(const std::string& key,
                                                  std::string fallback) const {
  if (!Has(key)) return fallback;
  return GetString(key);
}

absl::StatusOr<int64_t> GgufFile::GetIntOr(const std::string& key, int64_t fallback) const {
  if (!Has(key)) return fallback;
  return GetInt(key);
}

absl::StatusOr<double> GgufFile::GetFloatOr(const std::string& key, double fallback) const {
  if (!Has(key)) return fallback;
  return GetFloat(key);
}

absl::StatusOr<bool> GgufFile::GetBoolOr(const std::string& key, bool fallback) const {
  if (!Has(key)) return fallback;
  return GetBool(key);
}

absl::StatusOr<std::span<const std::string_view>> GgufFile::GetStrings(
    const std::string& key) const {
  TR_ASSIGN_OR_RETURN(const auto* value, Find<std::vector<std::string_view>>(key));
  return std::span<const std::string_view>(*value);
}

absl::StatusOr<std::span<const int64_t>> GgufFile::GetInts(const std::string& key) const {
  TR_ASSIGN_OR_RETURN(const auto* value, Find<std::vector<int64_t>>(key));
  return std::span<const int64_t>(*value);
}

absl::StatusOr<std::span<const double>> GgufFile::GetFloats(const std::string& key) const {
  TR_ASSIGN_OR_RETURN(const auto* value, Find<std::vector<double>>(key));
  return std::span<const double>(*value);
}

}  // namespace tokenrouter
