// The version of the wire contract (proto/*.proto) that this build speaks. Told in every hello and
// answered in Welcome and Attached.
#pragma once

#include <cstdint>

namespace tokenrouter {

inline constexpr uint32_t kProtocolVersion = 2;

}  // namespace tokenrouter
