// Keepalive must agree on both ends: a client that pings faster than the server's minimum is told
// to go away.
#pragma once

#include "absl/time/time.h"

namespace tokenrouter {

inline constexpr absl::Duration kKeepaliveTime =
    absl::Seconds(10);  // Between pings on an idle connection.
inline constexpr absl::Duration kKeepaliveTimeout =
    absl::Seconds(5);  // Silence after a ping: the peer is gone.
inline constexpr absl::Duration kMinPingInterval = absl::Seconds(5);  // The server's tolerance.
inline constexpr int kMaxMessageBytes = 64 << 20;                     // A frame; ids are small.

}  // namespace tokenrouter
