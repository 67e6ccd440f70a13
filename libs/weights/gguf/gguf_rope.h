// The rotary embedding of a GGUF model: <architecture>.rope.* and the tensor rope_freqs.weight,
// which is how converters store llama3's scaling.
// Ownership, threads: a free function without state.
// Errors: INVALID_ARGUMENT or NOT_FOUND naming file and key or tensor.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "libs/weights/description/rope_frequencies.h"
#include "libs/weights/gguf/gguf_file.h"

namespace tokenrouter {

// `prefix` is the architecture with a dot; `rope.dim` holds the head's size and is replaced by what
// the file states, if anything.
absl::Status ReadGgufRope(const GgufFile& file, const std::string& prefix, int64_t context_length,
                          RopeDescription& rope);

}  // namespace tokenrouter
