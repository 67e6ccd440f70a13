#include "services/gateway/text/prompt_guard.h"

#include "libs/status/status_macros.h"
#include "services/gateway/text/utf8.h"

namespace tokenrouter {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
// A cut changes only the tokens around it. This many are not counted, so that the sum is a lower
// bound.
constexpr int64_t kSlackPerPiece = 16;

}  // namespace

absl::StatusOr<std::optional<int64_t>> TokensBeyond(const TextModel& model, std::string_view text,
                                                    int64_t limit) {
  if (static_cast<int64_t>(text.size()) <= limit * kFreeBytesPerToken) {
    return std::optional<int64_t>();
  }
  int64_t tokens = 0;
  while (!text.empty() && tokens <= limit) {
    const std::string_view piece = Utf8Prefix(text, kPieceBytes);
    TR_ASSIGN_OR_RETURN(const auto ids, model.Encode(piece, /*add_special=*/false));
    tokens += std::max<int64_t>(static_cast<int64_t>(ids.size()) - kSlackPerPiece, 0);
    text.remove_prefix(piece.size());
  }
  return tokens > limit ? std::optional<int64_t>(tokens) : std::optional<int64_t>();
}

}  // namespace tokenrouter
