// Where the keys and values of one (block, kv head) lie in its tile:
//   keys transposed {head_dim, kKvBlockTokens}, then values {kKvBlockTokens, PaddedHeadDim},
//   and in 8 bits one float scale per key, then one per value: x = scale * q.
// Ownership: views into the caller's tile. Threads: pure functions. Units: bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "libs/torch_engine/model/kv_format.h"

namespace tokenrouter {

// Tokens of a KV block: attention reduces block by block over absolute positions.
inline constexpr int kKvBlockTokens = 32;
// Values of one token are stored padded to whole vectors of this many channels.
inline constexpr int kValuePadding = 16;

constexpr int64_t PaddedHeadDim(int64_t head_dim) {
  return (head_dim + kValuePadding - 1) / kValuePadding * kValuePadding;
}

// Element: float or int8_t. Byte: std::byte or const std::byte.
template <typename Element, typename Byte>
struct KvTile {
  template <typename T>
  using Of = std::conditional_t<std::is_const_v<Byte>, const T, T>;
  static constexpr bool kScaled = !std::is_same_v<Element, float>;

  KvTile(Byte* tile, int64_t head_dim)
      : keys(reinterpret_cast<Of<Element>*>(tile)),
        values(keys + head_dim * kKvBlockTokens),
        key_scales(reinterpret_cast<Of<float>*>(values + PaddedHeadDim(head_dim) * kKvBlockTokens)),
        value_scales(key_scales + kKvBlockTokens) {}

  Of<Element>* keys;
  Of<Element>* values;
  Of<float>* key_scales;  // The scales exist only where kScaled.
  Of<float>* value_scales;
};

constexpr int64_t KvTileBytes(KvFormat format, int64_t head_dim) {
  const int64_t elements = kKvBlockTokens * (head_dim + PaddedHeadDim(head_dim));
  constexpr int64_t kFloat = sizeof(float);
  return format == KvFormat::kInt8 ? elements + 2 * kKvBlockTokens * kFloat : elements * kFloat;
}

}  // namespace tokenrouter
