#include "libs/weights/packed/packed_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "libs/telemetry/log.h"
#include "libs/weights/packed/packed_prefix.h"

namespace tokenrouter {
namespace {

namespace fs = std::filesystem;

constexpr char kExtension[] = ".packed";
// Digits of a key's digest in a file's name; the header has all of it.
constexpr size_t kNameDigits = 16;

struct Entry {
  std::string path;
  int64_t bytes = 0;
  absl::Time used;
};

// Packed files and temporary ones of the folder, the least recently used one first.
std::vector<Entry> EntriesOf(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    const std::string extension = file.path().extension();
    struct stat info {};
    if (extension != kExtension && extension != kPackedTemporary) continue;
    if (::stat(file.path().c_str(), &info) != 0) continue;
    entries.push_back({file.path(), int64_t{info.st_size}, absl::TimeFromTimespec(info.st_mtim)});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  return entries;
}

bool IsTemporary(const Entry& entry) {
  return fs::path(entry.path).extension() == kPackedTemporary;
}

}  // namespace

std::string PackedCache::PathOf(const std::string& name, const PackedKey& key) const {
  const std::string digest = HexOf(Sha256(std::as_bytes(std::span(key.engine))));
  return absl::StrCat(folder_, "/", fs::path(name).filename().string(), "-",
                      digest.substr(0, kNameDigits), kExtension);
}

std::unique_ptr<PackedFile> PackedCache::Load(const std::string& name, const PackedKey& key,
                                              const ParallelFor& parallel,
                                              const DigestProgress& progress) const {
  const std::string path = PathOf(name, key);
  auto file = PackedFile::Open(path, key, parallel, progress);
  if (file.ok()) {
    // The time of the last use; a folder that cannot be written keeps the old one.
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
    LogInfo("weight_cache_hit", {{"file", path}, {"bytes", (*file)->bytes()}});
    return *std::move(file);
  }
  if (!absl::IsNotFound(file.status())) {
    LogWarning("weight_cache_rebuild", {{"reason", file.status()}});
  }
  return nullptr;
}

void PackedCache::AdmitToLargeKv(int64_t bytes) const {
  int64_t total = bytes;
  std::vector<Entry> entries = EntriesOf(folder_);
  for (const Entry& entry : entries) total += entry.bytes;
  for (const Entry& entry : entries) {
    const bool stale = absl::Now() - entry.used > kPackedTemporaryAge;
    // A young temporary file is being written by another process.
    if (IsTemporary(entry) ? !stale : total <= limit_bytes_) continue;
    std::error_code error;
    if (!fs::remove(entry.path, error)) continue;
    total -= entry.bytes;
    LogInfo("weight_cache_removed", {{"file", entry.path}, {"bytes", entry.bytes}});
  }
}

std::unique_ptr<PackedFileWriter> PackedCache::Begin(const std::string& name, const PackedKey& key,
                                                     int64_t expected_bytes) const {
  if (expected_bytes > limit_bytes_) {
    GiveUp(absl::ResourceExhaustedError(absl::StrCat(
        "the model needs ", expected_bytes, " bytes, weight_cache_bytes is ", limit_bytes_)));
    return nullptr;
  }
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    GiveUp(absl::UnavailableError(absl::StrCat("cannot create ", folder_, ": ", error.message())));
    return nullptr;
  }
  AdmitToLargeKv(expected_bytes);
  auto writer = PackedFileWriter::Create(PathOf(name, key), expected_bytes);
  if (writer.ok()) return *std::move(writer);
  GiveUp(writer.status());
  return nullptr;
}

void PackedCache::Finish(PackedFileWriter* writer, const PackedKey& key,
                         const ParallelFor& parallel) const {
  const absl::Status status = writer->Finish(key, parallel);
  if (!status.ok()) return GiveUp(status);
  LogInfo("weight_cache_written", {{"file", writer->path()}});
}

void PackedCache::GiveUp(const absl::Status& reason) {
  LogWarning("weight_cache_unusable", {{"reason", reason}});
}

}  // namespace tokenrouter
