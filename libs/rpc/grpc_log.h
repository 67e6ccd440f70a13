// What gRPC itself has to say, as log lines of ours:
// {"event":"grpc","at":"FILE:LINE","message":...}. Without it gRPC writes lines of its own form to
// stderr, between ours. Its errors are warnings here: what they lead to, we report ourselves.
// GRPC_VERBOSITY still says what gRPC logs at all. Threads: call once at start, before the first
// channel or server.
#pragma once

#include <cstddef>

namespace tokenrouter {

inline constexpr size_t kMaxGrpcMessage = 512;  // Bytes of a line's message; the rest is cut.

void SendGrpcLogHere();

}  // namespace tokenrouter
