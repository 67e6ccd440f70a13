// GetStateReply as JSON for the admin port, so that no gRPC client is needed.
// Threads: called on any thread but the loop's; waits for the loop, at most kStatePageWait.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "libs/concurrency/owner_loop.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

inline constexpr absl::Duration kStatePageWait = absl::Seconds(1);

// `fill` runs on the loop, possibly after this call has returned; the loop must outlive that.
// UNAVAILABLE when the loop does not answer in time.
absl::StatusOr<std::string> StatePage(OwnerLoop* loop,
                                      std::function<void(wire::GetStateReply*)> fill);

}  // namespace tokenrouter
