// A frame that has grown beyond the limit is sent as several, in the order in which the peer
// applies the fields of one frame: the peer ends where the whole frame would have brought it, and
// what concerns one request keeps its order. Messages are never split, only moved. Units: bytes on
// the wire; a part is at most `limit`, or one message that alone is larger. Threads: pure.
#pragma once

#include <cstddef>
#include <functional>

#include "proto/packages.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

// Calls `send` with each part; with the frame itself when it is within the limit. The frame's
// content is gone afterwards. The term is that of the frame. Returns the number of parts.
int SendSplit(wire::CommandFrame* frame, size_t limit,
              const std::function<void(wire::CommandFrame*)>& send);
int SendSplit(wire::SchedulerFrame* frame, size_t limit,
              const std::function<void(wire::SchedulerFrame*)>& send);

}  // namespace tokenrouter
