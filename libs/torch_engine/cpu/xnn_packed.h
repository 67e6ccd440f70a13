// Lets XNNPACK keep the packed weights of one operator in our PackedMemory: it is the operator's
// "weights cache". XNNPACK then packs nothing, and reads no weights, when they are there already.
// Ownership: `memory` must outlive this, and this the operator. Threads: one at a time.
// Units: bytes.
#pragma once

#include <xnnpack.h>

#include <cstddef>
#include <span>
#include <string>

#include "libs/torch_engine/cpu/packed_memory.h"

namespace tokenrouter {

class XnnPacked {
 public:
  XnnPacked(std::string name, PackedMemory* memory);
  XnnPacked(const XnnPacked&) = delete;
  XnnPacked& operator=(const XnnPacked&) = delete;

  // Whether the weights need not be read.
  bool found() const { return !packed_.empty(); }
  // For creating the operator.
  xnn_weights_cache_provider* provider() { return &provider_; }

 private:
  static size_t LookUp(void* self, const xnn_weights_cache_look_up_key* key);
  static void* Reserve(void* self, size_t bytes);
  static size_t Insert(void* self, const xnn_weights_cache_look_up_key* key, void* packed,
                       size_t bytes);
  static bool IsFinal(void* self);
  static void* Address(void* self, size_t offset);
  static xnn_status Delete(void* self);

  const std::string name_;
  PackedMemory* const memory_;
  std::span<const std::byte> packed_;
  xnn_weights_cache_provider provider_;
};

}  // namespace tokenrouter
