#include "libs/torch_engine/cpu/kv_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/torch_engine/cpu/available_memory.h"
#include "libs/torch_engine/cpu/kernels/kv_tile.h"

namespace tokenrouter {

int64_t KvMemory::BlockBytes(const AttentionShape& shape, KvFormat format) {
  return shape.layers * shape.kv_heads * KvTileBytes(format, shape.head_dim);
}

absl::StatusOr<std::unique_ptr<KvMemory>> KvMemory::Create(const AttentionShape& shape,
                                                           KvFormat format, int64_t budget_bytes) {
  const int64_t block_bytes = BlockBytes(shape, format);
  const int64_t blocks = budget_bytes / block_bytes;
  if (blocks < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("kv_bytes is ", budget_bytes, ", but one block of ", kKvBlockTokens,
                     " tokens takes ", block_bytes, " bytes; give at least that much"));
  }
  const size_t bytes = static_cast<size_t>(blocks * block_bytes);
  TR_RETURN_IF_ERROR(RequireAvailableMemory(static_cast<int64_t>(bytes), "the KV cache"));
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", bytes, " bytes for the KV cache: ", std::strerror(errno)));
  }
  madvise(memory, bytes, MADV_HUGEPAGE);  // Fewer page walks; refusal changes nothing.
  return std::unique_ptr<KvMemory>(new KvMemory(shape, KvTileBytes(format, shape.head_dim), blocks,
                                                static_cast<std::byte*>(memory), bytes));
}

KvMemory::KvMemory(const AttentionShape& shape, int64_t tile_bytes, int64_t blocks,
                   std::byte* memory, size_t bytes)
    : shape_(shape), tile_bytes_(tile_bytes), blocks_(blocks), memory_(memory), bytes_(bytes) {}

KvMemory::~KvMemory() { munmap(memory_, bytes_); }

void KvMemory::Copy(const BlockCopy& copy) {
  TR_CHECK(copy.source < blocks_ && copy.destination < blocks_);
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    // The heads of a block are adjacent. Tokens beyond copy.tokens are stale and never read.
    std::copy_n(Tile(layer, 0, copy.source), block_stride(), Tile(layer, 0, copy.destination));
  }
}

}  // namespace tokenrouter
