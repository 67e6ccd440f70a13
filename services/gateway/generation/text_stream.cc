#include "services/gateway/generation/text_stream.h"

#include <algorithm>

namespace tokenrouter {
namespace {

FinishReason ReasonOf(api::FinishReason reason) {
  switch (reason) {
    case api::FINISH_REASON_STOP:
      return FinishReason::kStop;
    case api::FINISH_REASON_LENGTH:
      return FinishReason::kLength;
    case api::FINISH_REASON_CANCELLED:
      return FinishReason::kCancelled;
    default:
      return FinishReason::kError;
  }
}

}  // namespace

TextStream::TextStream(int32_t prompt_length, StopMatcher stops, const TextModel* model)
    : model_(model),
      detokenizer_(model->NewDetokenizer()),
      stops_(std::move(stops)),
      position_(prompt_length) {
  usage_.prompt_tokens = prompt_length;
}

std::vector<TextPiece> TextStream::Push(const LinkEvent& event) {
  usage_.degraded = usage_.degraded || event.degraded;
  if (event.cached_tokens > 0) {
    usage_.cached_tokens = std::min(event.cached_tokens, usage_.prompt_tokens);
  }
  size_t count = event.tokens.size();
  bool ends_with_stop_id = false;
  if (event.finish) {
    const int32_t kept = std::max(event.finish->position() - event.base_position, 0);
    count = std::min(count, static_cast<size_t>(kept));
    ends_with_stop_id =
        event.finish->reason() == api::FINISH_REASON_STOP && count == static_cast<size_t>(kept);
  }
  std::vector<TextPiece> pieces;
  pieces.reserve(count + 1);
  for (size_t i = 0; i < count && !finished(); ++i) {
    pieces.push_back(PushToken(event, i, ends_with_stop_id && i + 1 == count));
  }
  if (event.finish && !finished()) End(*event.finish, &pieces);
  return pieces;
}

TextPiece TextStream::PushToken(const LinkEvent& event, size_t index, bool is_stop_id) {
  ++position_;
  const bool large = event.tokens[index].author == Author::kLarge;
  ++(large ? usage_.large_tokens : usage_.small_tokens);
  // A verified draft keeps its author, whichever side wrote the rest of the event.
  if (large && event.large_alone) ++usage_.large_alone_tokens;
  TokenInfo token;
  token.record = event.tokens[index];
  token.bytes = model_->TokenBytes(token.record.id);
  TextPiece piece;
  // The id that stopped the request is counted but is no part of the answer.
  if (!is_stop_id) {
    token.text = detokenizer_->Push(token.record.id);
    piece.text = stops_.Push(token.text);
  }
  piece.tokens.push_back(std::move(token));
  if (stops_.matched()) reason_ = FinishReason::kStop;
  return piece;
}

void TextStream::End(const wire::Finish& finish, std::vector<TextPiece>* pieces) {
  reason_ = ReasonOf(finish.reason());
  detail_ = finish.detail();
  std::string rest = stops_.Push(detokenizer_->Flush());
  if (!stops_.matched()) rest += stops_.Flush();
  if (!rest.empty()) pieces->push_back({std::move(rest), {}});
}

}  // namespace tokenrouter
