// Refuses a prompt that cannot fit into the context before all of it is tokenized: encoding
// megabytes can stall the process or exhaust its memory. Pure and thread-safe.
// Units: a text of up to kFreeBytesPerToken bytes per token of the context is not checked, since
// encoding it is affordable anyway.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/gateway/text/text_model.h"

namespace tokenrouter {

inline constexpr int64_t kFreeBytesPerToken = 8;

// A number of tokens above `limit` that `text` has at least; nothing when it may fit. Costs at most
// the encoding of `limit` tokens and one piece. REQUIRES: text is valid UTF-8.
absl::StatusOr<std::optional<int64_t>> TokensBeyond(const TextModel& model, std::string_view text,
                                                    int64_t limit);

}  // namespace tokenrouter
