#include "services/gateway/grpc/generate_reactor.h"

#include <utility>

#include "libs/routing/wire_types.h"
#include "libs/rpc/grpc_status.h"
#include "services/gateway/errors/exception_guard.h"
#include "services/gateway/text/utf8.h"

namespace tokenrouter {

void GenerateReactor::Begin() {
  MutexLock lock(&mutex_);
  self_ = shared_from_this();
}

void GenerateReactor::Adopt(std::unique_ptr<Generation> generation) {
  {
    MutexLock lock(&mutex_);
    // The client has left already; dropping the generation cancels it.
    if (!cancelled_) generation_ = std::move(generation);
  }
  Pump();
}

void GenerateReactor::Fail(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    if (std::exchange(finished_, true)) return;
    generation_.reset();
  }
  End(status);
}

void GenerateReactor::End(const absl::Status& status) {
  on_end_(status);
  Finish(ToGrpcStatus(status));
}

void GenerateReactor::SchedulePump() {
  post_([self = shared_from_this()] {
    const absl::Status status = CatchExceptions([&self] { self->Pump(); });
    if (!status.ok()) self->Fail(status);
  });
}

void GenerateReactor::Pump() {
  Next next = Next::kNothing;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    next = Decide(&status);
  }
  if (next == Next::kWrite) StartWrite(&reply_);
  if (next == Next::kFinish) End(status);
}

GenerateReactor::Next GenerateReactor::Decide(absl::Status* status) {
  if (writing_ || finished_) return Next::kNothing;
  if (cancelled_) {
    finished_ = true;
    *status = absl::CancelledError("the client has left");
    return Next::kFinish;
  }
  if (generation_ == nullptr) return Next::kNothing;
  if (!over_) TakeProgress();
  if (std::exchange(has_reply_, false)) {
    writing_ = true;
    return Next::kWrite;
  }
  if (!over_) {
    // For these tokens nothing is written, so they are acknowledged here; see OpenAiCall.
    generation_->Acknowledge();
    return Next::kNothing;
  }
  finished_ = true;
  *status = error_;
  generation_.reset();
  return Next::kFinish;
}

void GenerateReactor::TakeProgress() {
  const Generation::Progress progress = generation_->Poll();
  over_ = progress.ended;
  error_ = progress.error;
  reply_.Clear();
  reply_.set_request_id(generation_->request_id());
  for (const TextPiece& piece : progress.pieces) AddPiece(piece);
  has_reply_ = !reply_.text().empty() || reply_.tokens_size() > 0;
  if (over_ && error_.ok()) {
    has_reply_ = true;
    AddEnd();
  }
}

void GenerateReactor::AddPiece(const TextPiece& piece) {
  reply_.mutable_text()->append(ToValidUtf8(piece.text));
  if (!return_routing_) return;
  for (const TokenInfo& token : piece.tokens) {
    api::TokenRecord* record = reply_.add_tokens();
    record->set_id(token.record.id);
    record->set_text(ToValidUtf8(token.text));
    record->set_author(token.record.author == Author::kLarge ? api::ROLE_LARGE : api::ROLE_SMALL);
    record->set_entropy(token.record.entropy);
  }
}

void GenerateReactor::AddEnd() {
  const UsageCounts& usage = generation_->usage();
  reply_.set_finish_reason(ToWire(generation_->reason()));
  reply_.set_degraded(usage.degraded);
  reply_.set_large_alone(usage.large_alone_tokens > 0);
  api::Usage* wire = reply_.mutable_usage();
  wire->set_prompt_tokens(usage.prompt_tokens);
  wire->set_completion_tokens(usage.completion_tokens());
  wire->set_small_tokens(usage.small_tokens);
  wire->set_large_tokens(usage.large_tokens);
  wire->set_cached_tokens(usage.cached_tokens);
}

void GenerateReactor::OnWriteDone(bool ok) {
  {
    MutexLock lock(&mutex_);
    writing_ = false;
    cancelled_ = cancelled_ || !ok;
    if (ok && generation_ != nullptr) generation_->Acknowledge();
  }
  SchedulePump();
}

void GenerateReactor::OnCancel() {
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    generation_.reset();
  }
  SchedulePump();
}

void GenerateReactor::OnDone() {
  std::shared_ptr<GenerateReactor> self;  // Goes last: it may be the last reference.
  {
    MutexLock lock(&mutex_);
    self.swap(self_);
    generation_.reset();
  }
}

}  // namespace tokenrouter
