#include "libs/torch_engine/cpu/packed_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/weights/packed/packed_cache.h"

namespace tokenrouter {
namespace {

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

PackedMemory::~PackedMemory() {
  for (const std::span<std::byte> mapping : mappings_) munmap(mapping.data(), mapping.size());
}

void PackedMemory::UseFiles(std::unique_ptr<PackedFile> packed, PackedFileWriter* writer) {
  packed_ = std::move(packed);
  const MutexLock lock(&mutex_);
  writer_ = writer;
}

std::span<const std::byte> PackedMemory::Find(const std::string& name) const {
  return packed_ == nullptr ? std::span<const std::byte>() : packed_->Find(name);
}

void PackedMemory::Keep(const std::string& name, std::span<const std::byte> bytes) {
  const MutexLock lock(&mutex_);
  if (writer_ == nullptr) return;
  const absl::Status status = writer_->Append(name, bytes);
  if (status.ok()) return;
  PackedCache::GiveUp(status);
  writer_ = nullptr;
}

bool PackedMemory::complete() const {
  const MutexLock lock(&mutex_);
  return writer_ != nullptr;
}

absl::StatusOr<std::byte*> PackedMemory::Allocate(int64_t bytes) {
  TR_CHECK(bytes > 0);
  const MutexLock lock(&mutex_);
  const int64_t padded = RoundUp(bytes, kPackedAlignment);
  if (padded > static_cast<int64_t>(free_.size())) {
    // One large page more than needed, to start on a boundary of large pages.
    const int64_t size = RoundUp(std::max(padded, kChunkBytes), kLargePage) + kLargePage;
    void* const memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for ", bytes, " bytes of weights"));
    }
    mappings_.emplace_back(static_cast<std::byte*>(memory), size);
    const auto address = reinterpret_cast<uintptr_t>(memory);
    free_ = mappings_.back().subspan(RoundUp(address, kLargePage) - address);
    // A refusal costs speed only.
    madvise(free_.data(), free_.size(), MADV_HUGEPAGE);
  }
  std::byte* const part = free_.data();
  free_ = free_.subspan(padded);
  return part;
}

}  // namespace tokenrouter
