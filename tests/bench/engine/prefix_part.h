// What the prefix cache saves, on real processes with the real pair. Rows of part
//   prefix  time to first token of a shared prefix of about 2k tokens, first and second request,
//           when the small and when the large model answers
//   turns   an agent's conversation that grows to about 4k tokens, 10 turns with a tenth of the
//           tokens routed: what the large model read in each turn beside what was new. The last
//           row sums up.
// new_tokens: prompt and answer beyond the turn before. large_read_tokens can be more by the part
// of a block that a turn leaves unfinished (32 tokens), and by answers that the tokenizer cuts in
// another way when they come back as text.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/engine/engine_options.h"

namespace tokenrouter {

absl::Status RunPrefixPart(const EngineBenchOptions& options);

}  // namespace tokenrouter
