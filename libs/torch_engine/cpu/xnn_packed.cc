#include "libs/torch_engine/cpu/xnn_packed.h"

#include <cstdint>
#include <utility>

namespace tokenrouter {
namespace {

// XNNPACK's value for "not in the cache".
constexpr size_t kNotFound = SIZE_MAX;
// Where the operator's only entry lies.
constexpr size_t kOffset = 0;

}  // namespace

XnnPacked::XnnPacked(std::string name, PackedMemory* memory)
    : name_(std::move(name)),
      memory_(memory),
      packed_(memory->Find(name_)),
      provider_({.context = this,
                 .look_up = LookUp,
                 .reserve_space = Reserve,
                 .look_up_or_insert = Insert,
                 .is_finalized = IsFinal,
                 .offset_to_addr = Address,
                 .delete_cache = Delete}) {}

size_t XnnPacked::LookUp(void* self, const xnn_weights_cache_look_up_key* /*key*/) {
  return static_cast<XnnPacked*>(self)->found() ? kOffset : kNotFound;
}

void* XnnPacked::Reserve(void* self, size_t bytes) {
  auto memory = static_cast<XnnPacked*>(self)->memory_->Allocate(static_cast<int64_t>(bytes));
  return memory.ok() ? *memory : nullptr;
}

size_t XnnPacked::Insert(void* self, const xnn_weights_cache_look_up_key* /*key*/, void* packed,
                         size_t bytes) {
  auto* const cache = static_cast<XnnPacked*>(self);
  cache->packed_ = {static_cast<const std::byte*>(packed), bytes};
  cache->memory_->Keep(cache->name_, cache->packed_);
  return kOffset;
}

bool XnnPacked::IsFinal(void* /*self*/) { return true; }

void* XnnPacked::Address(void* self, size_t offset) {
  return const_cast<std::byte*>(static_cast<XnnPacked*>(self)->packed_.data()) + offset;
}

xnn_status XnnPacked::Delete(void* /*self*/) { return xnn_status_success; }

}  // namespace tokenrouter
