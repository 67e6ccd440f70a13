// MappedFile is a whole file mapped read-only into memory.
// Ownership: the bytes live as long as the object; everything that views them must not outlive it.
// Threads: immutable after Open, so any thread may read. The file must not be truncated by another
// process while it is mapped: reading past its new end would end this process (SIGBUS).
// Units: bytes. An empty file maps to an empty span.
// Errors: NOT_FOUND when the path does not exist, INVALID_ARGUMENT when it is no regular file,
// UNAVAILABLE for everything else the system refuses; the message names path and reason.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace tokenrouter {

class MappedFile {
 public:
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // Differs after every change of the file: size, times of the last change of data and of inode,
  // device, inode. A copy of the file differs too, so a difference alone does not prove a change.
  const std::string& identity() const { return identity_; }
  // Takes the pages read so far out of this process's memory; they come back when they are read.
  void DropPages() const;

 private:
  MappedFile(std::string path, std::string identity, std::span<const std::byte> bytes)
      : path_(std::move(path)), identity_(std::move(identity)), bytes_(bytes) {}

  const std::string path_;
  const std::string identity_;
  const std::span<const std::byte> bytes_;
};

}  // namespace tokenrouter
