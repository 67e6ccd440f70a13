#include "services/gateway/testing/fake_scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "libs/status/check.h"
#include "libs/tokens/protocol_version.h"

namespace tokenrouter {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

}  // namespace

void FakeScheduler::Start(int port, uint64_t term) {
  {
    MutexLock lock(&mutex_);
    term_ = term;
    pair_.set_pair("default");
    pair_.set_small_workers(1);
    pair_.set_large_workers(1);
    pair_.set_context_limit(1 << 20);
  }
  auto server =
      ServerRuntime::Start({.address = absl::StrCat("127.0.0.1:", port), .services = {this}});
  TR_CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
  port_ = server_->port();
}

void FakeScheduler::Stop() {
  server_->Drain(absl::ZeroDuration());
  server_ = nullptr;
}

void FakeScheduler::Hold(int tokens) {
  MutexLock lock(&mutex_);
  hold_ = tokens;
}

void FakeScheduler::Release() {
  MutexLock lock(&mutex_);
  hold_.reset();
  wire::SchedulerFrame frame;
  Advance(&frame);
  Send(std::move(frame));
}

void FakeScheduler::Reject(wire::Rejection rejection) {
  MutexLock lock(&mutex_);
  rejection_ = std::move(rejection);
}

void FakeScheduler::SetPair(int small_workers, int context_limit) {
  MutexLock lock(&mutex_);
  pair_.set_small_workers(small_workers);
  pair_.set_context_limit(context_limit);
  wire::SchedulerFrame frame;
  *frame.mutable_pair() = pair_;
  Send(std::move(frame));
}

bool FakeScheduler::WaitFor(
    const std::function<bool(const std::map<uint64_t, Request>&)>& predicate) {
  const absl::Time deadline = absl::Now() + kPatience;
  MutexLock lock(&mutex_);
  while (!predicate(requests_)) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitFor(&mutex_, left);
  }
  return true;
}

std::string FakeScheduler::Text(int tokens) {
  std::string text;
  for (int i = 0; i < tokens; ++i) text += static_cast<char>('a' + i % 26);
  return text;
}

grpc::ServerBidiReactor<wire::GatewayFrame, wire::SchedulerFrame>* FakeScheduler::Connect(
    grpc::CallbackServerContext* context) {
  return Stream::Start(context, [this](std::shared_ptr<Stream::Writer> writer) {
    return Stream::Handlers{[this, writer](const wire::GatewayFrame& frame, const ReadCredit&) {
                              OnFrame(writer, frame);
                            },
                            [] {}};
  });
}

void FakeScheduler::OnFrame(const std::shared_ptr<Stream::Writer>& writer,
                            const wire::GatewayFrame& frame) {
  MutexLock lock(&mutex_);
  writer_ = writer;
  wire::SchedulerFrame reply;
  if (frame.has_hello()) {
    reply.mutable_welcome()->set_protocol_version(kProtocolVersion);
    *reply.mutable_welcome()->mutable_pair() = pair_;
  }
  Apply(frame, &reply);
  Advance(&reply);
  Send(std::move(reply));
  changed_.SignalAll();
}

void FakeScheduler::Apply(const wire::GatewayFrame& frame, wire::SchedulerFrame* reply) {
  for (const wire::Submit& submit : frame.submits()) {
    if (rejection_) {
      wire::Rejection* rejection = reply->add_rejections();
      *rejection = *rejection_;
      rejection->set_handle(submit.handle());
      continue;
    }
    Request& request = requests_[submit.handle()];
    request.submit = submit;
    request.committed = submit.ids_size();
    request.acknowledged = submit.spec().prompt_length();
  }
  for (const wire::Ack& ack : frame.acks()) requests_[ack.handle()].acknowledged = ack.position();
  for (const wire::Cancel& cancel : frame.cancels()) requests_[cancel.handle()].cancelled = true;
  for (const wire::GatewayFinish& finish : frame.finishes()) {
    requests_[finish.handle()].gateway_finish = finish.finish();
  }
}

void FakeScheduler::Advance(wire::SchedulerFrame* reply) {
  for (auto& [handle, request] : requests_) {
    if (request.finished || request.cancelled || request.gateway_finish) continue;
    const wire::GenerationSpec& spec = request.submit.spec();
    const int32_t end = spec.prompt_length() + spec.stop().max_new_tokens();
    int32_t until = std::min(end, request.acknowledged + kCredit);
    if (hold_) until = std::min(until, spec.prompt_length() + *hold_);
    if (until <= request.committed) continue;
    wire::TokenChunk* chunk = reply->add_chunks();
    chunk->set_handle(handle);
    chunk->set_base_position(request.committed);
    for (; request.committed < until; ++request.committed) {
      const int32_t generated = request.committed - spec.prompt_length();
      chunk->add_ids('a' + generated % 26);
      chunk->add_entropies(0.25f);
      chunk->mutable_authors()->push_back(generated % 10 == 9 ? '\2' : '\1');
    }
    request.furthest_ahead =
        std::max(request.furthest_ahead, request.committed - request.acknowledged);
    request.finished = request.committed == end;
    if (!request.finished) continue;
    chunk->mutable_finish()->set_position(end);
    chunk->mutable_finish()->set_reason(api::FINISH_REASON_LENGTH);
  }
}

void FakeScheduler::Send(wire::SchedulerFrame frame) {
  if (writer_ == nullptr || frame.ByteSizeLong() == 0) return;
  frame.set_term(term_);
  // The test handles a gateway that left in between.
  (void)writer_->Write(std::move(frame));
}

}  // namespace tokenrouter
