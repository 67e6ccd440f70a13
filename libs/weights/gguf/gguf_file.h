// GgufFile is a memory-mapped GGUF file, versions 2 and 3, little-endian: typed metadata and the
// tensor directory. Everything is checked when it is opened; tensor data itself is only viewed.
// Ownership: owns the mapping. Strings and tensor bytes it hands out live as long as it does.
// Threads: immutable after Open, so any thread may read.
// Units: offsets and sizes in bytes, shapes row-major (outermost first). A key that is absent is
// NOT_FOUND from Get* and the given default from Get*Or.
// Errors: INVALID_ARGUMENT naming file, key or tensor, and the limit, for garbage, truncation,
// misalignment and unsupported types; NOT_FOUND for a missing file, key or tensor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/weights/file/mapped_file.h"
#include "libs/weights/file/tensor_view.h"
#include "libs/weights/gguf/gguf_value.h"

namespace tokenrouter {

inline constexpr uint64_t kMaxGgufMetadataKeys = 1 << 16;
inline constexpr uint64_t kMaxGgufTensors = 1 << 16;
inline constexpr uint64_t kMaxGgufKeyBytes = 65535;
inline constexpr uint64_t kMaxGgufTensorNameBytes = 255;
inline constexpr uint32_t kMaxGgufDimensions = 4;

class GgufFile {
 public:
  static absl::StatusOr<std::unique_ptr<GgufFile>> Open(const std::string& path);
  // Reads from memory, for tests and fuzzers. `bytes` is not owned and must outlive the file;
  // `path` is only for messages.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Parse(std::span<const std::byte> bytes,
                                                         const std::string& path);

  const std::string& path() const { return path_; }
  uint32_t version() const { return version_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // MappedFile::identity; empty when read from memory.
  std::string identity() const { return file_ == nullptr ? "" : file_->identity(); }
  // MappedFile::DropPages, if a file is mapped.
  void DropPages() const {
    if (file_ != nullptr) file_->DropPages();
  }
  // The bytes before the tensor data: header, metadata and tensor directory.
  std::span<const std::byte> header() const { return bytes_.first(header_bytes_); }

  bool Has(const std::string& key) const { return metadata_.count(key) > 0; }
  absl::StatusOr<std::string> GetString(const std::string& key) const;
  absl::StatusOr<int64_t> GetInt(const std::string& key) const;
  // Integers are accepted and widened.
  absl::StatusOr<double> GetFloat(const std::string& key) const;
  absl::StatusOr<bool> GetBool(const std::string& key) const;
  absl::StatusOr<std::string> GetStringOr(const std::string& key, std::string fallback) const;
  absl::StatusOr<int64_t> GetIntOr(const std::string& key, int64_t fallback) const;
  absl::StatusOr<double> GetFloatOr(const std::string& key, double fallback) const;
  absl::StatusOr<bool> GetBoolOr(const std::string& key, bool fallback) const;
  absl::StatusOr<std::span<const std::string_view>> GetStrings(const std::string& key) const;
  absl::StatusOr<std::span<const int64_t>> GetInts(const std::string& key) const;
  absl::StatusOr<std::span<const double>> GetFloats(const std::string& key) const;
  const std::map<std::string, GgufValue>& metadata() const { return metadata_; }

  // In the order of the file's directory.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  // Null when the file has no such tensor.
  const TensorView* FindTensor(const std::string& name) const;

 private:
  // Where a tensor's bytes start, relative to the data section, until that section is known.
  using Offsets = std::vector<uint64_t>;

  GgufFile(std::span<const std::byte> bytes, std::string path)
      : path_(std::move(path)), bytes_(bytes) {}

  absl::Status ParseAll();
  absl::Status ParseMetadata(GgufCursor& cursor, uint64_t count);
  absl::Status ParseDirectory(GgufCursor& cursor, uint64_t count, Offsets& offsets);
  absl::Status PlaceTensors(size_t directory_end, const Offsets& offsets);
  absl::StatusOr<uint64_t> Alignment() const;

  template <typename T>
  absl::StatusOr<const T*> Find(const std::string& key) const;

  const std::string path_;
  std::unique_ptr<MappedFile> file_;  // Null when parsed from memory.
  const std::span<const std::byte> bytes_;
  uint32_t version_ = 0;
  size_t header_bytes_ = 0;
  std::map<std::string, GgufValue> metadata_;
  std::vector<TensorView> tensors_;
  std::map<std::string, size_t> tensor_index_;
};

}  // namespace tokenrouter
