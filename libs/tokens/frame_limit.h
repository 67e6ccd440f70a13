// How large a frame of many requests may grow before it is sent as several.
#pragma once

#include <cstddef>

namespace tokenrouter {

// Bytes on the wire. Far below what gRPC takes (libs/rpc/keepalive.h), so that the frame's other
// fields and one whole request, which is never split, have room besides; large enough that ordinary
// service never splits.
inline constexpr size_t kMaxFrameBytes = 4 << 20;

}  // namespace tokenrouter
