// PackedCache is a folder of packed files, so that a model is packed once per machine. A failure
// costs time only: everything but success is a log line, and the caller packs
// again. Ownership: keeps nothing open. Threads: one; other processes may use the folder at the
// same time: files appear by rename, and a file removed while others have it mapped stays with
// them. Units: bytes. The folder is bounded: the least recently used files are evicted. Log
// events: weight_cache_hit, weight_cache_rebuild, weight_cache_written, weight_cache_removed,
// weight_cache_unusable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "libs/weights/packed/packed_file.h"

namespace tokenrouter {

inline constexpr int64_t kDefaultPackedCacheBytes = int64_t{32} << 30;
// Temporary files that are older were left by a process that died.
inline constexpr absl::Duration kPackedTemporaryAge = absl::Hours(24);

class PackedCache {
 public:
  // `limit_bytes`: of all files together.
  PackedCache(std::string folder, int64_t limit_bytes)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

  // The file that was made of `key`; null when there is none, or none to be trusted. `name` is for
  // people, e.g. the model's path.
  std::unique_ptr<PackedFile> Load(const std::string& name, const PackedKey& key,
                                   const ParallelFor& parallel,
                                   const DigestProgress& progress) const;
  // A new file for `key`, of about `expected_bytes`; null when it cannot be made.
  std::unique_ptr<PackedFileWriter> Begin(const std::string& name, const PackedKey& key,
                                          int64_t expected_bytes) const;
  // Makes the file visible.
  void Finish(PackedFileWriter* writer, const PackedKey& key, const ParallelFor& parallel) const;
  // Logs why a file that was begun is abandoned.
  static void GiveUp(const absl::Status& reason);

 private:
  std::string PathOf(const std::string& name, const PackedKey& key) const;
  // Removes files, the least recently used one first, until `bytes` more fit.
  void AdmitToLargeKv(int64_t bytes) const;

  const std::string folder_;
  const int64_t limit_bytes_;
};

}  // namespace tokenrouter
