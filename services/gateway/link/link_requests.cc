#include "services/gateway/link/link_requests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/routing/wire_records.h"
#include "libs/status/check.h"
#include "libs/tokens/frame_limit.h"
#include "services/gateway/errors/api_error.h"

namespace tokenrouter {
namespace {

// Of a Submit's id on the wire, at most, and of its numbers and heads.
constexpr size_t kIdBytes = 5;
constexpr size_t kFieldsBytes = 64;

absl::Status StatusOfRejection(const wire::Rejection& rejection) {
  const bool known = rejection.code() > 0 && rejection.code() <= 16;
  absl::Status status(
      known ? static_cast<absl::StatusCode>(rejection.code()) : absl::StatusCode::kInternal,
      rejection.message());
  if (!rejection.reason().empty()) status = WithCode(std::move(status), rejection.reason());
  if (rejection.retry_after_ms() > 0) {
    status = WithRetryAfter(std::move(status), absl::Milliseconds(rejection.retry_after_ms()));
  }
  return status;
}

LinkEvent EventOf(const wire::TokenChunk& chunk) {
  LinkEvent event;
  event.handle = chunk.handle();
  event.base_position = chunk.base_position();
  event.tokens = ReadRecords(chunk);
  event.degraded = chunk.degraded();
  event.large_alone = chunk.large_alone();
  event.cached_tokens = chunk.cached_tokens();
  if (chunk.has_finish()) event.finish = chunk.finish();
  return event;
}

}  // namespace

void LinkRequests::Submit(uint64_t handle, wire::GenerationSpec spec, std::vector<int32_t> ids,
                          absl::Time now) {
  Request request;
  request.spec = std::move(spec);
  request.ids = std::move(ids);
  request.acknowledged = request.committed();
  request.ack_sent = request.committed();
  request.give_up = now + options_.submit_wait;
  if (const int64_t deadline_ms = request.spec.deadline_ms(); deadline_ms > 0) {
    request.deadline = now + absl::Milliseconds(deadline_ms);
  }
  const bool is_new = requests_.emplace(handle, std::move(request)).second;
  TR_CHECK(is_new) << "handle " << handle << " was submitted twice";
  ++unsubmitted_;
}

void LinkRequests::Acknowledge(uint64_t handle, int32_t position) {
  const auto it = requests_.find(handle);
  if (it == requests_.end()) return;
  Request& request = it->second;
  request.acknowledged = std::max(request.acknowledged, std::min(position, request.committed()));
  acks_due_ = acks_due_ || request.acknowledged > request.ack_sent;
}

void LinkRequests::Cancel(uint64_t handle) {
  const auto it = requests_.find(handle);
  if (it == requests_.end()) return;
  if (it->second.submitted) cancels_.push_back(handle);
  Erase(it);
}

void LinkRequests::Finish(uint64_t handle, wire::Finish finish) {
  const auto it = requests_.find(handle);
  if (it == requests_.end()) return;
  if (it->second.submitted) {
    wire::GatewayFinish message;
    message.set_handle(handle);
    *message.mutable_finish() = std::move(finish);
    finishes_.push_back(std::move(message));
  }
  Erase(it);
}

void LinkRequests::Erase(Requests::iterator it) {
  if (!it->second.submitted) --unsubmitted_;
  requests_.erase(it);
}

void LinkRequests::OnStreamUp(absl::Time now) { last_ack_ = now; }

void LinkRequests::OnStreamLost(absl::Time now) {
  acks_due_ = false;
  cancels_.clear();
  finishes_.clear();
  for (auto& [handle, request] : requests_) {
    if (!request.submitted) continue;
    request.submitted = false;
    ++unsubmitted_;
    request.not_before = absl::InfinitePast();
    request.give_up = now + options_.resume_wait;
  }
}

bool LinkRequests::IsNext(const wire::TokenChunk& chunk, const Request& request) {
  if (chunk.base_position() == request.committed()) return true;
  ++(chunk.base_position() < request.committed() ? counters_->dropped_duplicate
                                                 : counters_->dropped_gap);
  return false;
}

absl::Status LinkRequests::CheckChunk(const wire::TokenChunk& chunk, const Request& request) const {
  if (!RecordsFit(chunk)) return absl::InternalError("the scheduler sent a malformed token chunk");
  const int32_t ahead = request.committed() + chunk.ids_size() - request.acknowledged;
  if (ahead > options_.max_unacknowledged) {
    return absl::InternalError(
        absl::StrCat("the scheduler is ", ahead,
                     " tokens ahead of the client; allowed: ", options_.max_unacknowledged));
  }
  return absl::OkStatus();
}

void LinkRequests::OnChunk(const wire::TokenChunk& chunk) {
  const auto it = requests_.find(chunk.handle());
  if (it == requests_.end() || !it->second.submitted) {
    ++counters_->dropped_unknown;
    return;
  }
  Request& request = it->second;
  if (!IsNext(chunk, request)) return;
  if (absl::Status status = CheckChunk(chunk, request); !status.ok()) {
    cancels_.push_back(chunk.handle());
    End(chunk.handle(), std::move(status));
    return;
  }
  request.ids.insert(request.ids.end(), chunk.ids().begin(), chunk.ids().end());
  request.authors += chunk.authors();
  request.state = chunk.state();
  if (chunk.has_grant()) request.grant = chunk.grant();
  request.grant_heard = request.grant_heard || chunk.has_grant();
  if (!request.grant_heard) request.grant.reset();  // This scheduler does not tell.
  events_.push_back(EventOf(chunk));
  if (chunk.has_finish()) Erase(it);
}

void LinkRequests::OnRejection(const wire::Rejection& rejection, absl::Time now) {
  const auto it = requests_.find(rejection.handle());
  if (it == requests_.end() || !it->second.submitted) {
    ++counters_->dropped_unknown;
    return;
  }
  Request& request = it->second;
  const bool lingers = rejection.code() == static_cast<int>(absl::StatusCode::kAlreadyExists) &&
                       request.give_up != absl::InfiniteFuture() && now < request.give_up;
  if (lingers) {
    request.submitted = false;
    ++unsubmitted_;
    request.not_before = now + options_.duplicate_retry;
    return;
  }
  End(rejection.handle(), StatusOfRejection(rejection));
}

void LinkRequests::End(uint64_t handle, absl::Status error) {
  LinkEvent event;
  event.handle = handle;
  event.error = std::move(error);
  events_.push_back(std::move(event));
  Erase(requests_.find(handle));
}

wire::Submit LinkRequests::MakeSubmit(uint64_t handle, const Request& request,
                                      absl::Time now) const {
  wire::Submit submit;
  submit.set_handle(handle);
  *submit.mutable_spec() = request.spec;
  if (request.deadline != absl::InfiniteFuture()) {
    // Not 0, which would mean that there is none.
    const absl::Duration left =
        absl::Ceil(request.deadline - now, absl::Milliseconds(1));  // Not sooner than it was said.
    submit.mutable_spec()->set_deadline_ms(std::max<int64_t>(1, absl::ToInt64Milliseconds(left)));
  }
  submit.mutable_ids()->Add(request.ids.begin(), request.ids.end());
  submit.set_authors(request.authors);
  submit.set_state(request.state);
  submit.set_resumed(request.sent_before);
  if (request.grant.has_value()) *submit.mutable_grant() = *request.grant;
  return submit;
}

void LinkRequests::AddSubmits(wire::GatewayFrame* frame, absl::Time now) {
  if (unsubmitted_ == 0) return;
  size_t bytes = 0;
  for (auto& [handle, request] : requests_) {
    if (request.submitted || now < request.not_before) continue;
    // No frame may come near gRPC's limit: a resubmit of many requests goes out in parts.
    const size_t more = request.ids.size() * kIdBytes + request.spec.ByteSizeLong() +
                        request.authors.size() + request.state.size() + kFieldsBytes;
    if (bytes > 0 && bytes + more > kMaxFrameBytes) return;
    bytes += more;
    *frame->add_submits() = MakeSubmit(handle, request, now);
    request.submitted = true;
    request.grant_heard = false;
    --unsubmitted_;
    // On a first submit the refusal as a duplicate is final; only a resubmit may collide with its
    // own earlier submission, whose stream the scheduler has not seen end yet.
    if (!request.sent_before) request.give_up = absl::InfiniteFuture();
    if (request.sent_before) ++counters_->resubmitted;
    request.sent_before = true;
    // Of the ids that a Submit carries, the scheduler takes only the prompt as acknowledged.
    request.ack_sent = request.spec.prompt_length();
    acks_due_ = acks_due_ || request.acknowledged > request.ack_sent;
  }
}

void LinkRequests::AddAcks(wire::GatewayFrame* frame, absl::Time now) {
  if (!acks_due_ || now < last_ack_ + options_.ack_interval) return;
  for (auto& [handle, request] : requests_) {
    if (!request.submitted || request.acknowledged <= request.ack_sent) continue;
    wire::Ack* ack = frame->add_acks();
    ack->set_handle(handle);
    ack->set_position(request.acknowledged);
    request.ack_sent = request.acknowledged;
  }
  acks_due_ = false;
  last_ack_ = now;
}

void LinkRequests::Expire(absl::Time now, absl::FunctionRef<absl::Status()> why) {
  if (unsubmitted_ == 0) return;
  std::vector<uint64_t> expired;
  for (const auto& [handle, request] : requests_) {
    if (!request.submitted && now >= std::min(request.give_up, request.deadline)) {
      expired.push_back(handle);
    }
  }
  for (const uint64_t handle : expired) {
    if (const Request& request = requests_.at(handle); now >= request.deadline) {
      const int64_t deadline_ms = request.spec.deadline_ms();
      End(handle, WithCode(absl::DeadlineExceededError(
                               absl::StrCat("the deadline of ", deadline_ms, " ms has passed")),
                           "deadline"));
      continue;
    }
    End(handle, why());
  }
}

bool LinkRequests::Fill(wire::GatewayFrame* frame, absl::Time now) {
  for (const uint64_t handle : std::exchange(cancels_, {})) {
    frame->add_cancels()->set_handle(handle);
  }
  for (wire::GatewayFinish& finish : std::exchange(finishes_, {})) {
    *frame->add_finishes() = std::move(finish);
  }
  AddSubmits(frame, now);
  AddAcks(frame, now);
  return frame->cancels_size() > 0 || frame->finishes_size() > 0 || frame->submits_size() > 0 ||
         frame->acks_size() > 0;
}

absl::Time LinkRequests::NextDeadline(bool up) const {
  absl::Time next = absl::InfiniteFuture();
  if (up && acks_due_) next = last_ack_ + options_.ack_interval;
  if (unsubmitted_ == 0) return next;
  for (const auto& [handle, request] : requests_) {
    if (request.submitted) continue;
    next = std::min({next, request.give_up, request.deadline});
    if (up) next = std::min(next, request.not_before);
  }
  return next;
}

std::vector<LinkEvent> LinkRequests::TakeEvents() { return std::exchange(events_, {}); }

}  // namespace tokenrouter
