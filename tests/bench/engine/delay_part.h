// What a long prompt does to others, on real processes with the real large model alone. Rows of
// part
//   delay  rows that write while a prompt of about 4k tokens is read: gaps between their tokens
//          before and meanwhile; how long the prompt and a short one that came after it waited for
//          their first tokens, and how long each does alone
#pragma once

#include "absl/status/status.h"
#include "tests/bench/engine/engine_options.h"

namespace tokenrouter {

absl::Status RunDelayPart(const EngineBenchOptions& options);

}  // namespace tokenrouter
