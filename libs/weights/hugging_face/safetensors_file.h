// SafetensorsFile is one memory-mapped .safetensors file with F32, F16 and BF16 tensors. The JSON
// header is checked completely when it is opened; tensor data is only viewed.
// Ownership: owns the mapping; tensor bytes live as long as the file object.
// Threads: immutable after Open, so any thread may read.
// Units: bytes; shapes row-major. Tensor data need not be aligned for its type.
// Errors: INVALID_ARGUMENT naming file, tensor and limit for garbage, truncation, sizes that do not
// match the shape and other types; NOT_FOUND for a missing file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "libs/weights/file/mapped_file.h"
#include "libs/weights/file/tensor_view.h"

namespace tokenrouter {

inline constexpr uint64_t kMaxSafetensorsHeaderBytes = uint64_t{64} << 20;
inline constexpr size_t kMaxSafetensorsDimensions = 8;

class SafetensorsFile {
 public:
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(const std::string& path);
  // Reads from memory, for tests and fuzzers. `bytes` is not owned and must outlive the file.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Parse(std::span<const std::byte> bytes,
                                                                const std::string& path);

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // MappedFile::identity; empty when read from memory.
  std::string identity() const { return file_ == nullptr ? "" : file_->identity(); }
  // MappedFile::DropPages, if a file is mapped.
  void DropPages() const {
    if (file_ != nullptr) file_->DropPages();
  }
  std::span<const std::byte> header() const { return bytes_.first(header_bytes_); }
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  // Null when the file has no such tensor.
  const TensorView* FindTensor(const std::string& name) const;

 private:
  SafetensorsFile(std::span<const std::byte> bytes, std::string path)
      : path_(std::move(path)), bytes_(bytes) {}

  absl::Status ParseHeader();

  const std::string path_;
  std::unique_ptr<MappedFile> file_;  // Null when parsed from memory.
  const std::span<const std::byte> bytes_;
  size_t header_bytes_ = 0;
  std::map<std::string, TensorView> tensors_;
};

}  // namespace tokenrouter
