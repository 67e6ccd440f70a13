// The effect of a long prompt on other requests, on real processes where only the large model
// serves. Rows of
// part
//   delay  decoding rows while a prompt of about 4k tokens is prefilled: gaps between their tokens
//          before and meanwhile; time to first token of the prompt and of a short one that arrived
//          after it, and the same of each alone
#pragma once

#include "absl/status/status.h"
#include "tests/bench/engine/engine_options.h"

namespace tokenrouter {

absl::Status RunDelayPart(const EngineBenchOptions& options);

}  // namespace tokenrouter
