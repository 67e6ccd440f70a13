#include "libs/torch_engine/cpu/kv_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/torch_engine/cpu/available_memory.h"
#include "libs/torch_engine/cpu/kernels/kernel_table.h"

namespace tokenrouter {

int64_t KvMemory::BlockBytes(const AttentionShape& shape) {
  return shape.layers * shape.kv_heads * KvTileFloats(shape.head_dim) *
         static_cast<int64_t>(sizeof(float));
}

absl::StatusOr<std::unique_ptr<KvMemory>> KvMemory::Create(const AttentionShape& shape,
                                                           int64_t budget_bytes) {
  const int64_t block_bytes = BlockBytes(shape);
  const int64_t blocks = budget_bytes / block_bytes;
  if (blocks < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("KV budget of ", budget_bytes, " bytes holds no block of ", block_bytes,
                     " bytes (", kKvBlockTokens, " tokens): give at least that much"));
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
  return std::unique_ptr<KvMemory>(new KvMemory(shape, blocks, static_cast<float*>(memory), bytes));
}

KvMemory::KvMemory(const AttentionShape& shape, int64_t blocks, float* memory, size_t bytes)
    : shape_(shape),
      blocks_(blocks),
      tile_(KvTileFloats(shape.head_dim)),
      memory_(memory),
      bytes_(bytes) {}

KvMemory::~KvMemory() { munmap(memory_, bytes_); }

void KvMemory::Copy(const BlockCopy& copy) {
  TR_CHECK(copy.source < blocks_ && copy.destination < blocks_);
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    // The heads of a block are adjacent. Tokens beyond copy.tokens are stale and never read.
    std::copy_n(Tile(layer, 0, copy.source), block_stride(), Tile(layer, 0, copy.destination));
  }
}

}  // namespace tokenrouter
