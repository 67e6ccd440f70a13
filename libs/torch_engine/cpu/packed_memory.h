// Memory for packed weights: what a packed file already holds comes from there, the rest is
// anonymous memory in large pages where the system has them (every step reads all of it, and small
// pages cost up to a third of a core's speed) and goes into a new packed file, if one is written.
// Ownership: owns what it gives and the file read; nothing is given back before its end. The writer
// is the caller's.
// Threads: thread-safe, because slices of a matrix are packed by many threads.
// Units: bytes; parts are named by tensor and slice, once per engine.
// Errors: RESOURCE_EXHAUSTED naming what was asked for. A failing writer is given up with a log
// line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "libs/concurrency/mutex.h"
#include "libs/weights/packed/packed_file.h"

namespace tokenrouter {

inline constexpr int64_t kPackedAlignment = 64;  // A cache line.

class PackedMemory {
 public:
  PackedMemory() = default;
  ~PackedMemory();
  PackedMemory(const PackedMemory&) = delete;
  PackedMemory& operator=(const PackedMemory&) = delete;

  // Before the first part; either may be null. `writer` must outlive the last Keep.
  void UseFiles(std::unique_ptr<PackedFile> packed, PackedFileWriter* writer);

  // Packed bytes of that name from the file; empty when they must be packed.
  std::span<const std::byte> Find(const std::string& name) const;
  // Zeros, aligned to kPackedAlignment. REQUIRES: bytes > 0.
  absl::StatusOr<std::byte*> Allocate(int64_t bytes);
  // Keeps what was packed for the next start.
  void Keep(const std::string& name, std::span<const std::byte> bytes);
  // Whether everything kept so far was written.
  bool complete() const;

 private:
  // Parts come from mappings of at least this many bytes; untouched pages cost no memory.
  static constexpr int64_t kChunkBytes = int64_t{64} << 20;
  static constexpr int64_t kLargePage = int64_t{2} << 20;

  std::unique_ptr<PackedFile> packed_;
  mutable Mutex mutex_;
  PackedFileWriter* writer_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<std::span<std::byte>> mappings_ ABSL_GUARDED_BY(mutex_);
  std::span<std::byte> free_ ABSL_GUARDED_BY(mutex_);  // Rest of the last mapping.
};

}  // namespace tokenrouter
