// The savings of the prefix cache, on real processes with the real pair. Rows of part
//   prefix  time to first token of a shared prefix of about 2k tokens, first and second request,
//           when the small and when the large model answers
//   turns   an agent's conversation that grows to about 4k tokens, 10 chat turns with a tenth of
//   the
//           tokens routed: the tokens that the large model computed in each chat turn beside the
//           new ones. The last row sums up.
// new_tokens: prompt and answer beyond the previous chat turn. large_read_tokens can be larger by
// the part of a block that a chat turn leaves unfinished (32 tokens), and by answers that the
// tokenizer splits differently when they come back as text.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/engine/engine_options.h"

namespace tokenrouter {

absl::Status RunPrefixPart(const EngineBenchOptions& options);

}  // namespace tokenrouter
