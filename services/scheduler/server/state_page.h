// GetStateReply as JSON, for the admin port: what grpcurl shows, without a client.
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

// `fill` runs on the loop, which must outlive the call it makes even when nobody waits any more.
// UNAVAILABLE when the loop does not answer in time.
absl::StatusOr<std::string> StatePage(OwnerLoop* loop,
                                      std::function<void(wire::GetStateReply*)> fill);

}  // namespace tokenrouter
