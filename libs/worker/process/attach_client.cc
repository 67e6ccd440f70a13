#include "libs/worker/process/attach_client.h"

#include <algorithm>
#include <utility>

#include "libs/rpc/channel_factory.h"

namespace tokenrouter {

AttachClient::AttachClient(std::string scheduler, const Clock* clock, const WorkerGauges* gauges,
                           AttachInbox* inbox)
    : scheduler_(std::move(scheduler)),
      clock_(*clock),
      gauges_(*gauges),
      inbox_(*inbox),
      heartbeat_ms_(absl::ToInt64Milliseconds(kDefaultHeartbeat)),
      heart_({.name = "heartbeat", .mailbox_limit = 16, .idle = [this] { return Beat(); }}) {
  heart_.Start();
}

AttachClient::~AttachClient() {
  heart_.Stop();
  Disconnect();
}

void AttachClient::Connect(wire::WorkerFrame hello) {
  Disconnect();
  const uint64_t stream = ++streams_;
  inbox_.Begin(stream);
  // Each attempt gets its own channel, since gRPC's backoff between attempts would add to ours.
  const std::shared_ptr<wire::Scheduler::Stub> stub =
      wire::Scheduler::NewStub(MakeChannel(scheduler_));
  channels_.Keep(stream, stub);
  {
    MutexLock lock(&mutex_);
    current_ = stream;
  }
  const std::shared_ptr<Stream::Writer> writer =
      Stream::Start([&stub](grpc::ClientContext* context,
                            Stream::Reactor* reactor) { stub->async()->Attach(context, reactor); },
                    {.on_read =
                         [this, stream](wire::CommandFrame frame, ReadCredit credit) {
                           OnRead(stream, std::move(frame), std::move(credit));
                         },
                     .on_closed =
                         [this, stream](const absl::Status& status) {
                           inbox_.End(stream, status);
                           channels_.Closed(stream);
                         }});
  {
    MutexLock lock(&mutex_);
    writer_ = writer;
  }
  Send(std::move(hello));
}

void AttachClient::OnRead(uint64_t stream, wire::CommandFrame frame, ReadCredit credit) {
  if (frame.has_attached()) OnAttached(stream, frame);
  if (inbox_.Push(stream, std::move(frame), clock_.Now(), std::move(credit))) return;
  // The engine thread is far behind: start over with the scheduler rather than lose a command.
  const std::shared_ptr<Stream::Writer> ours = writer();
  if (ours != nullptr) ours->Abandon(absl::ResourceExhaustedError("too many frames wait"));
}

void AttachClient::OnAttached(uint64_t stream, const wire::CommandFrame& frame) {
  {
    MutexLock lock(&mutex_);
    if (stream != current_) return;
    term_ = frame.term();
    if (frame.attached().heartbeat_ms() > 0) heartbeat_ms_ = frame.attached().heartbeat_ms();
  }
  // The heartbeat thread may sleep for a longer interval; with a full mailbox it is awake anyway.
  (void)heart_.Post([this] { next_beat_ = absl::InfinitePast(); });
}

bool AttachClient::Send(wire::WorkerFrame frame) {
  const std::shared_ptr<Stream::Writer> ours = writer();
  if (ours == nullptr) return false;
  if (ours->Write(std::move(frame))) return true;
  ours->Abandon(absl::ResourceExhaustedError("the scheduler does not read"));
  return false;
}

void AttachClient::Disconnect() {
  std::shared_ptr<Stream::Writer> ours;
  {
    MutexLock lock(&mutex_);
    ours = std::exchange(writer_, nullptr);
    current_ = 0;
    term_ = 0;
  }
  if (ours != nullptr) ours->Finish(absl::OkStatus());
}

absl::Duration AttachClient::Beat() {
  const absl::Duration interval = absl::Milliseconds(heartbeat_ms_.load());
  const absl::Time now = clock_.Now();
  if (now < next_beat_) return std::min(interval, next_beat_ - now);
  next_beat_ = now + interval;
  wire::WorkerFrame frame;
  std::shared_ptr<Stream::Writer> ours;
  {
    // Both are read together: a term of one stream must not be sent on the next before its hello.
    MutexLock lock(&mutex_);
    ours = writer_;
    frame.set_term(term_);
  }
  if (ours == nullptr || frame.term() == 0) return interval;
  *frame.mutable_heartbeat() = gauges_.Heartbeat(now);
  // The sender handles a full queue; a single missing heartbeat does no harm.
  (void)ours->Write(std::move(frame));
  return interval;
}

std::shared_ptr<AttachClient::Stream::Writer> AttachClient::writer() const {
  MutexLock lock(&mutex_);
  return writer_;
}

}  // namespace tokenrouter
