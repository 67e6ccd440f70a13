// The decode grant of a request as the scheduler keeps it: which side writes and for how long, and
// what the algorithm had decided when large-only service gave the grant instead. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

// The decode grant that an algorithm decided on.
struct AlgorithmGrant {
  Role role = Role::kSmall;
  wire::DecodeGrant terms;
};

struct RequestGrant {
  Role role = Role::kSmall;
  wire::DecodeGrant terms;
  // Large-only service gave the large side this grant, or a longer window (mode_rule.h).
  bool large_alone = false;
  // The algorithm's decision that this grant replaced, less the tokens written since. Absent when
  // the grant is the algorithm's own.
  std::optional<AlgorithmGrant> own = std::nullopt;
};

// What is left of the grant after its side wrote `written` tokens: a reopen repeats the rest, not
// the grant as it was given. A verification is answered by then. True when a window may have
// changed.
bool CountDown(int32_t written, RequestGrant* grant);

// The grant with the algorithm's own decision in force. REQUIRES: grant.own.
RequestGrant OwnGrant(const RequestGrant& grant);

}  // namespace tokenrouter
