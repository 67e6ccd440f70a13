#include "libs/tokens/keyed_random.h"

#include <Random123/philox.h>

#include <cmath>

namespace tokenrouter {

double KeyedUniform(const RandomKey& key, uint32_t index) {
  const r123::Philox4x32::key_type philox_key = {
      {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)}};
  const r123::Philox4x32::ctr_type counter = {{static_cast<uint32_t>(key.position), key.choice,
                                               static_cast<uint32_t>(key.purpose), index / 4}};
  const uint32_t bits = r123::Philox4x32()(counter, philox_key)[index % 4];
  return (static_cast<double>(bits) + 0.5) * 0x1p-32;
}

float KeyedGumbel(const RandomKey& key, TokenId id) {
  return static_cast<float>(-std::log(-std::log(KeyedUniform(key, static_cast<uint32_t>(id)))));
}

}  // namespace tokenrouter
