// Memory for packed weights, in large pages where the system has them: every step reads all of it,
// and small pages cost up to a third of the memory's speed.
// Ownership: owns what it gives; nothing is given back before its end. Threads: one owner thread.
// Units: bytes. Errors: RESOURCE_EXHAUSTED naming what was asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace tokenrouter {

inline constexpr int64_t kPackedAlignment = 64;  // A cache line.

class PackedMemory {
 public:
  PackedMemory() = default;
  ~PackedMemory();
  PackedMemory(const PackedMemory&) = delete;
  PackedMemory& operator=(const PackedMemory&) = delete;

  // Zeros, aligned to kPackedAlignment. REQUIRES: bytes > 0.
  absl::StatusOr<std::byte*> Allocate(int64_t bytes);

 private:
  // Parts come from mappings of at least so many bytes; what is not touched costs no memory.
  static constexpr int64_t kChunkBytes = int64_t{64} << 20;
  static constexpr int64_t kLargePage = int64_t{2} << 20;

  std::vector<std::span<std::byte>> mappings_;
  std::span<std::byte> free_;  // Rest of the last mapping.
};

}  // namespace tokenrouter
