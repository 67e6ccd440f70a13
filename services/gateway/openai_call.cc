#include "services/gateway/openai_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/gateway/api_error.h"

namespace tokenrouter {
namespace {

constexpr const char* kServiceModeHeader = "X-TokenRouter-Service-Mode";

void AddEvent(const std::string& json, std::string* events) {
  absl::StrAppend(events, "data: ", json, "\n\n");
}

}  // namespace

HttpStep ErrorReply(const absl::Status& status) {
  const ApiError error = ToApiError(status);
  HttpStep step;
  step.kind = HttpStep::Kind::kReply;
  step.status = error.http_status;
  step.headers.emplace_back("Content-Type", "application/json");
  if (error.retry_after > absl::ZeroDuration()) {
    // Whole seconds, rounded up: the header knows no fractions.
    const int64_t seconds = absl::ToInt64Seconds(error.retry_after + absl::Milliseconds(999));
    step.headers.emplace_back("Retry-After", absl::StrCat(seconds));
  }
  step.bytes = ErrorJson(error);
  return step;
}

HttpStep JsonReply(std::string json) {
  HttpStep step;
  step.kind = HttpStep::Kind::kReply;
  step.headers.emplace_back("Content-Type", "application/json");
  step.bytes = std::move(json);
  return step;
}

HttpStep OpenAiCall::Next() { return stream_ ? NextOfStream() : NextOfReply(); }

void OpenAiCall::OnWritten() {
  // The head alone gave the client no token.
  if (pending_.empty()) generation_->Acknowledge();
}

HttpStep OpenAiCall::NextOfReply() {
  Generation::Progress progress = generation_->Poll();
  for (TextPiece& piece : progress.pieces) {
    text_ += piece.text;
    if (!header_.logprobs && !header_.return_routing) continue;
    for (TokenInfo& token : piece.tokens) tokens_.push_back(std::move(token));
  }
  if (!progress.ended) {
    // Nothing waits for the client here: its text is kept until the end.
    generation_->Acknowledge();
    return HttpStep();
  }
  if (!progress.error.ok()) return ErrorReply(progress.error);
  HttpStep reply =
      JsonReply(WholeReply(header_, text_, tokens_, generation_->reason(), generation_->usage()));
  if (generation_->usage().degraded) reply.headers.emplace_back("X-TokenRouter-Degraded", "true");
  reply.headers.emplace_back(kServiceModeHeader, generation_->usage().service_mode());
  return reply;
}

HttpStep OpenAiCall::NextOfStream() {
  HttpStep step;
  if (pending_.empty() && !over_) {
    const Generation::Progress progress = generation_->Poll();
    if (!head_sent_ && progress.ended && !progress.error.ok()) return ErrorReply(progress.error);
    pending_ = Events(progress);
    over_ = progress.ended;
  }
  if (pending_.empty() && !over_) {
    // Tokens without text to show (held back, or special ids): no write will acknowledge them, and
    // without credit the text they wait for never comes.
    generation_->Acknowledge();
    return step;
  }
  if (!std::exchange(head_sent_, true)) return Head();
  if (pending_.empty()) {
    step.kind = HttpStep::Kind::kStreamEnd;
    step.close = failed_;
    return step;
  }
  step.kind = HttpStep::Kind::kStreamData;
  step.bytes = std::exchange(pending_, {});
  return step;
}

HttpStep OpenAiCall::Head() {
  HttpStep step;
  step.kind = HttpStep::Kind::kStreamHead;
  step.headers = {{"Content-Type", "text/event-stream; charset=utf-8"},
                  {"Cache-Control", "no-cache"},
                  {"X-Accel-Buffering", "no"}};
  if (generation_->usage().degraded) step.headers.emplace_back("X-TokenRouter-Degraded", "true");
  // Only this wish is kept whatever happens, so only it is known before the end.
  if (header_.asked_routed) step.headers.emplace_back(kServiceModeHeader, "routed");
  return step;
}

std::string OpenAiCall::Events(const Generation::Progress& progress) {
  const bool show_tokens = header_.logprobs || header_.return_routing;
  std::string events;
  for (const TextPiece& piece : progress.pieces) {
    // One event per token; one without text only where the token itself is shown.
    if (piece.text.empty() && (!show_tokens || piece.tokens.empty())) continue;
    AddEvent(DeltaEvent(header_, piece.text, piece.tokens, std::exchange(first_, false)), &events);
  }
  if (progress.ended) AddEnd(progress, &events);
  return events;
}

void OpenAiCall::AddEnd(const Generation::Progress& progress, std::string* events) {
  if (!progress.error.ok()) {
    failed_ = true;
    AddEvent(ErrorJson(ToApiError(progress.error)), events);
    return;
  }
  AddEvent(FinishEvent(header_, generation_->reason(), std::exchange(first_, false)), events);
  if (header_.include_usage) AddEvent(UsageEvent(header_, generation_->usage()), events);
  AddEvent("[DONE]", events);
}

}  // namespace tokenrouter
