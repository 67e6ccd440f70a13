#include "services/gateway/generation/generation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/concurrency/mutex.h"
#include "libs/status/status_macros.h"
#include "libs/telemetry/log.h"
#include "services/gateway/errors/api_error.h"

namespace tokenrouter {

// The port's thread leaves events here for the front end's thread. Credits bound its size.
class Generation::Mailbox final : public GenerationSink {
 public:
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void OnEvent(LinkEvent event) override {
    std::function<void()> wake;
    {
      MutexLock lock(&mutex_);
      if (closed_) return;
      if (events_.empty()) wake = wake_;
      events_.push_back(std::move(event));
    }
    if (wake) wake();
  }

  std::vector<LinkEvent> Take() {
    MutexLock lock(&mutex_);
    return std::exchange(events_, {});
  }

  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
    wake_ = nullptr;
    events_.clear();
  }

 private:
  Mutex mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  std::vector<LinkEvent> events_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::StatusOr<std::unique_ptr<Generation>> Generation::Start(
    TokenRequest request, const GenerationEnvironment& environment, std::function<void()> wake) {
  auto mailbox = std::make_shared<Mailbox>(std::move(wake));
  std::unique_ptr<Generation> generation(
      new Generation(request, std::move(request.stops), environment, mailbox));
  generation->handle_ =
      environment.port->Submit(std::move(request.spec), std::move(request.ids), std::move(mailbox));
  if (generation->handle_ == 0) {
    generation->ended_ = true;
    generation->LogEnd("refused");
    return WithCode(absl::UnavailableError("the gateway takes no requests now"), "shutting_down");
  }
  return generation;
}

Generation::Generation(const TokenRequest& request, StopMatcher stops,
                       const GenerationEnvironment& environment, std::shared_ptr<Mailbox> mailbox)
    : environment_(environment),
      mailbox_(std::move(mailbox)),
      request_id_(request.spec.request_id()),
      choice_(request.spec.choice()),
      algorithm_(request.spec.routing().algorithm()),
      started_(environment.clock->Now()),
      last_token_(started_),
      text_(request.spec.prompt_length(), std::move(stops), environment.model),
      acknowledged_(request.spec.prompt_length()) {
  environment_.metrics->requests_in_flight.Increment();
  // The choices of a request share its prompt.
  if (choice_ == 0) environment_.metrics->prompt_tokens.Increment(request.spec.prompt_length());
}

Generation::~Generation() {
  mailbox_->Close();
  environment_.metrics->requests_in_flight.Decrement();
  if (ended_) return;
  environment_.port->Cancel(handle_);
  environment_.metrics->cancelled.Increment();
  LogEnd("cancelled");
}

Generation::Progress Generation::Poll() {
  Progress progress;
  for (const LinkEvent& event : mailbox_->Take()) {
    if (!ended_) TakeEvent(event, &progress);
  }
  progress.ended = ended_;
  return progress;
}

void Generation::TakeEvent(const LinkEvent& event, Progress* progress) {
  if (!event.error.ok()) {
    ended_ = true;
    progress->error = event.error;
    LogEnd(absl::StatusCodeToString(event.error.code()).c_str());
    return;
  }
  const UsageCounts before = text_.usage();
  std::vector<TextPiece> pieces = text_.Push(event);
  const UsageCounts& after = text_.usage();
  environment_.metrics->small_tokens.Increment(after.small_tokens - before.small_tokens);
  environment_.metrics->large_tokens.Increment(after.large_tokens - before.large_tokens);
  const int32_t alone = after.large_alone_tokens - before.large_alone_tokens;
  environment_.metrics->large_alone_tokens.Increment(alone);
  environment_.metrics->routed_tokens.Increment(after.completion_tokens() -
                                                before.completion_tokens() - alone);
  if (after.degraded && !before.degraded) environment_.metrics->degraded_requests.Increment();
  ObserveTokens(after.completion_tokens() - before.completion_tokens());
  for (TextPiece& piece : pieces) progress->pieces.push_back(std::move(piece));
  if (text_.finished()) TakeEnd(progress);
}

void Generation::TakeEnd(Progress* progress) {
  ended_ = true;
  if (text_.ended_by_stop_string()) {
    wire::Finish finish;
    finish.set_position(text_.position());
    finish.set_reason(api::FINISH_REASON_STOP);
    finish.set_detail("stop string");
    environment_.port->Finish(handle_, std::move(finish));
  }
  environment_.metrics->e2e_request_latency.Observe(
      absl::ToDoubleSeconds(environment_.clock->Now() - started_));
  if (reason() == FinishReason::kError) {
    progress->error = absl::InternalError(absl::StrCat("the generation failed: ", text_.detail()));
  } else if (reason() == FinishReason::kCancelled) {
    progress->error = absl::CancelledError(absl::StrCat("cancelled: ", text_.detail()));
  }
  LogEnd(progress->error.ok() ? FinishReasonName(reason()) : "error");
}

void Generation::ObserveTokens(int32_t count) {
  if (count == 0) return;
  const absl::Time now = environment_.clock->Now();
  if (first_token_ == absl::ZeroDuration()) {
    first_token_ = now - started_;
    environment_.metrics->time_to_first_token.Observe(absl::ToDoubleSeconds(first_token_));
    --count;
  }
  // Tokens that came with the first one have no gap that could be seen.
  if (count > 0 && last_token_ != started_) {
    const double gap = absl::ToDoubleSeconds(now - last_token_) / count;
    for (int32_t i = 0; i < count; ++i) environment_.metrics->inter_token_latency.Observe(gap);
  }
  last_token_ = now;
}

void Generation::Acknowledge() {
  if (ended_ || text_.position() == acknowledged_) return;
  acknowledged_ = text_.position();
  environment_.port->Acknowledge(handle_, acknowledged_);
}

void Generation::LogEnd(const char* outcome) const {
  const UsageCounts& usage = text_.usage();
  LogInfo("generation_ended",
          {{"request_id", request_id_},
           {"choice", choice_},
           {"outcome", outcome},
           {"algorithm", algorithm_},
           {"prompt_tokens", usage.prompt_tokens},
           {"cached_tokens", usage.cached_tokens},
           {"small_tokens", usage.small_tokens},
           {"large_tokens", usage.large_tokens},
           {"degraded", usage.degraded},
           {"service_mode", usage.service_mode()},
           {"first_token_ms", absl::ToDoubleMilliseconds(first_token_)},
           {"total_ms", absl::ToDoubleMilliseconds(environment_.clock->Now() - started_)}});
}

}  // namespace tokenrouter
