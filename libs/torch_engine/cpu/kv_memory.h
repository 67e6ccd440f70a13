// KV memory of the CPU device: one anonymous mapping of all blocks of all layers, taken once.
// Ownership: owns the mapping. Threads: Tile may be called by any; writers keep apart by tile.
// Units: bytes are exact; a block holds kKvBlockTokens tokens of every layer and kv head.
// Errors: INVALID_ARGUMENT when the budget holds no block; RESOURCE_EXHAUSTED when the machine has
// less memory left than the budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "libs/paging/block_types.h"
#include "libs/torch_engine/model/kv_format.h"
#include "libs/torch_engine/model/ops.h"

namespace tokenrouter {

class KvMemory {
 public:
  // Bytes of one block of a model.
  static int64_t BlockBytes(const AttentionShape& shape, KvFormat format);
  // As many blocks as fit into `budget_bytes`.
  static absl::StatusOr<std::unique_ptr<KvMemory>> Create(const AttentionShape& shape,
                                                          KvFormat format, int64_t budget_bytes);
  ~KvMemory();
  KvMemory(const KvMemory&) = delete;
  KvMemory& operator=(const KvMemory&) = delete;

  int64_t blocks() const { return blocks_; }
  // Bytes from one block's tile to the next block's, same layer and head.
  int64_t block_stride() const { return shape_.kv_heads * tile_bytes_; }
  // KvTileBytes bytes: keys and values of one block, layer and kv head.
  std::byte* Tile(int64_t layer, int64_t kv_head, int64_t block) const {
    return memory_ + ((layer * blocks_ + block) * shape_.kv_heads + kv_head) * tile_bytes_;
  }
  void Copy(const BlockCopy& copy);

 private:
  KvMemory(const AttentionShape& shape, int64_t tile_bytes, int64_t blocks, std::byte* memory,
           size_t bytes);

  const AttentionShape shape_;
  const int64_t tile_bytes_;
  const int64_t blocks_;
  std::byte* const memory_;
  const size_t bytes_;
};

}  // namespace tokenrouter
