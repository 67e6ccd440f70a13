#include "services/gateway/openai/openai_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/gateway/errors/api_error.h"

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
  if (pending_.empty()) choices_->Acknowledge();
}

HttpStep OpenAiCall::NextOfReply() {
  ParallelChoices::Progress progress = choices_->Poll();
  if (!progress.error.ok()) return ErrorReply(progress.error);
  for (ParallelChoices::ChoiceUpdate& update : progress.news) Keep(std::move(update));
  if (!progress.ended) {
    // Acknowledged at once, since the text is kept until the end and does not wait for the client.
    choices_->Acknowledge();
    return HttpStep();
  }
  const UsageCounts usage = choices_->usage();
  HttpStep reply = JsonReply(WholeReply(header_, replies_, usage));
  if (usage.degraded) reply.headers.emplace_back("X-TokenRouter-Degraded", "true");
  reply.headers.emplace_back(kServiceModeHeader, usage.service_mode());
  return reply;
}

void OpenAiCall::Keep(ParallelChoices::ChoiceUpdate update) {
  ChoiceReply& reply = replies_[update.index];
  reply.reason = update.reason;
  for (TextPiece& piece : update.pieces) {
    reply.text += piece.text;
    if (!header_.logprobs && !header_.return_routing) continue;
    for (TokenInfo& token : piece.tokens) reply.tokens.push_back(std::move(token));
  }
}

HttpStep OpenAiCall::NextOfStream() {
  HttpStep step;
  if (pending_.empty() && !over_) {
    const ParallelChoices::Progress progress = choices_->Poll();
    if (!head_sent_ && progress.ended && !progress.error.ok()) return ErrorReply(progress.error);
    pending_ = Events(progress);
    over_ = progress.ended;
  }
  if (pending_.empty() && !over_) {
    // No write will acknowledge tokens without visible text (held back, or special ids), and
    // without credit the text that they wait for would never arrive.
    choices_->Acknowledge();
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
  if (choices_->usage().degraded) step.headers.emplace_back("X-TokenRouter-Degraded", "true");
  // Only a requested routed mode is certain to be kept, so only it is known before the end.
  if (header_.asked_routed) step.headers.emplace_back(kServiceModeHeader, "routed");
  return step;
}

std::string OpenAiCall::Events(const ParallelChoices::Progress& progress) {
  std::string events;
  for (const ParallelChoices::ChoiceUpdate& update : progress.news) AddUpdate(update, &events);
  if (!progress.ended) return events;
  if (!progress.error.ok()) {
    failed_ = true;
    AddEvent(ErrorJson(ToApiError(progress.error)), &events);
    return events;
  }
  if (header_.include_usage) AddEvent(UsageEvent(header_, choices_->usage()), &events);
  AddEvent("[DONE]", &events);
  return events;
}

void OpenAiCall::AddUpdate(const ParallelChoices::ChoiceUpdate& update, std::string* events) {
  const bool show_tokens = header_.logprobs || header_.return_routing;
  for (const TextPiece& piece : update.pieces) {
    // One event per token; one without text only where the token itself is shown.
    if (piece.text.empty() && (!show_tokens || piece.tokens.empty())) continue;
    AddEvent(DeltaEvent(header_, update.index, piece.text, piece.tokens, Begin(update.index)),
             events);
  }
  if (update.reason == FinishReason::kNone) return;
  AddEvent(FinishEvent(header_, update.index, update.reason, Begin(update.index)), events);
}

}  // namespace tokenrouter
