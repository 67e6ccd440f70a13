// PackedFile is a file of named sections that hold the weights of one model as one engine packed
// them, mapped read-only, so that processes share its pages. PackedFileWriter makes such a file
// under a temporary name and renames it when it is whole.
// A file is accepted when its header and data match their SHA-256, its key is the requested one,
// and the model files are those it was made from: by their identity (size, times, inode), or else,
// after a copy for example, by a digest of all their bytes.
// Layout: prefix of kPackedPrefixBytes (magic, place and digest of the header), data, header
// (JSON). Ownership: sections live as long as the file object. The file may be removed while it is
// mapped, but must not be truncated (see MappedFile). Threads: a PackedFile is immutable. A writer
// belongs to one thread. Units: bytes; sections start at multiples of kPackedSectionAlignment.
// Errors of Open: NOT_FOUND without a file; DATA_LOSS for one that is damaged, of another layout,
// or of another key or model. Of the writer: UNAVAILABLE naming file and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libs/weights/file/digest.h"
#include "libs/weights/file/mapped_file.h"

namespace tokenrouter {

inline constexpr size_t kPackedPrefixBytes = 64;
inline constexpr size_t kPackedSectionAlignment = 64;
inline constexpr size_t kMaxPackedHeaderBytes = size_t{64} << 20;

// What a packed file was made of.
struct PackedKey {
  std::string engine;  // Everything but the model's files that decides the packed bytes.
  std::string files;   // Identity of the model's files.
  // Digest of all bytes of the model's files; reads them, so it is only called when needed.
  std::function<std::string()> content;
};

class PackedFile {
 public:
  // Reads every byte once.
  static absl::StatusOr<std::unique_ptr<PackedFile>> Open(const std::string& path,
                                                          const PackedKey& key,
                                                          const ParallelFor& parallel,
                                                          const DigestProgress& progress);

  const std::string& path() const { return file_->path(); }
  int64_t bytes() const { return static_cast<int64_t>(file_->bytes().size()); }
  // Empty when there is no such section.
  std::span<const std::byte> Find(const std::string& name) const;

 private:
  explicit PackedFile(std::unique_ptr<MappedFile> file) : file_(std::move(file)) {}
  absl::Status Check(const PackedKey& key, const ParallelFor& parallel,
                     const DigestProgress& progress);

  const std::unique_ptr<MappedFile> file_;
  std::map<std::string, std::span<const std::byte>> sections_;
};

class PackedFileWriter {
 public:
  // Reserves `expected_bytes` on the disk where the file system can.
  static absl::StatusOr<std::unique_ptr<PackedFileWriter>> Create(const std::string& path,
                                                                  int64_t expected_bytes);
  // Removes the temporary file unless Finish succeeded.
  ~PackedFileWriter();
  PackedFileWriter(const PackedFileWriter&) = delete;
  PackedFileWriter& operator=(const PackedFileWriter&) = delete;

  // After an error the writer is of no more use. REQUIRES: `name` is new.
  absl::Status Append(const std::string& name, std::span<const std::byte> bytes);
  // Writes the header and gives the file its name, replacing one that has it.
  absl::Status Finish(const PackedKey& key, const ParallelFor& parallel);

  const std::string& path() const { return path_; }

 private:
  struct Section {
    size_t offset, bytes;
  };
  PackedFileWriter(std::string path, std::string temporary, int descriptor);
  absl::Status Write(std::span<const std::byte> bytes, size_t at);
  absl::Status Failed(const char* what, int error) const;

  const std::string path_;
  const std::string temporary_;
  const int descriptor_;
  size_t end_ = kPackedPrefixBytes;
  std::map<std::string, Section> sections_;
  bool finished_ = false;
};

}  // namespace tokenrouter
