// The version of the wire contract (proto/tokenrouter/internal/v1) that this build speaks. It is
// sent in every hello and answered in Welcome and Attached.
#pragma once

#include <cstdint>

namespace tokenrouter {

inline constexpr uint32_t kProtocolVersion = 2;

}  // namespace tokenrouter
