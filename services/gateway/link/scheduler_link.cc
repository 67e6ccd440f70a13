#include "services/gateway/link/scheduler_link.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/rpc/channel_factory.h"
#include "libs/telemetry/log.h"

namespace tokenrouter {
namespace {

// Frames waiting for gRPC. One frame holds everything of a tick, so this is seconds of a stuck
// peer.
constexpr size_t kPendingFrames = 256;
// And bytes of them: everything that is live is submitted again at once after a restart, several
// times the ids that a scheduler takes (CoreOptions::max_ids).
constexpr size_t kPendingBytes = size_t{256} << 20;

}  // namespace

struct SchedulerLink::Gate {
  Mutex mutex;
  OwnerLoop* loop ABSL_GUARDED_BY(mutex) = nullptr;
  prometheus::Counter* dropped ABSL_GUARDED_BY(mutex) = nullptr;  // Lives as long as the loop.
  std::atomic<bool> lost{false};  // A closure did not fit into the mailbox.

  void Post(std::function<void()> closure) {
    MutexLock lock(&mutex);
    if (loop == nullptr || loop->Post(std::move(closure))) return;
    dropped->Increment();
    lost = true;
    // The loop may have emptied its mailbox since then without having seen the flag.
    (void)loop->Post([] {});
  }
};

std::unique_ptr<SchedulerLink> SchedulerLink::Start(LinkOptions options, const Clock* clock,
                                                    GatewayMetrics* metrics, size_t mailbox_limit) {
  std::unique_ptr<SchedulerLink> link(
      new SchedulerLink(std::move(options), clock, metrics, mailbox_limit));
  {
    MutexLock lock(&link->gate_->mutex);
    link->gate_->loop = &link->loop_;
    link->gate_->dropped = &metrics->dropped_overflow;
  }
  link->loop_.Start();
  return link;
}

SchedulerLink::SchedulerLink(LinkOptions options, const Clock* clock, GatewayMetrics* metrics,
                             size_t mailbox_limit)
    : target_(options.scheduler),
      clock_(clock),
      metrics_(metrics),
      gate_(std::make_shared<Gate>()),
      core_(std::move(options)),
      loop_({.name = "sched-link", .mailbox_limit = mailbox_limit, .idle = [this] {
               return Pump();
             }}) {
  PublishHealth();
}

SchedulerLink::~SchedulerLink() { Stop(); }

void SchedulerLink::Stop() {
  if (stopped_.exchange(true)) return;
  (void)loop_.Post([this] { HangUp(); });
  {
    MutexLock lock(&gate_->mutex);
    gate_->loop = nullptr;
  }
  loop_.Stop();
  HangUp();  // Again, if the mailbox was full: channels_ waits for the end.
  sinks_.clear();
}

uint64_t SchedulerLink::Submit(wire::GenerationSpec spec, std::vector<int32_t> ids,
                               std::shared_ptr<GenerationSink> sink) {
  if (stopped_) return 0;
  const uint64_t handle = next_handle_++;
  calls_.Entering(handle);
  const bool posted = loop_.Post([this, handle, spec = std::move(spec), ids = std::move(ids),
                                  sink = std::move(sink)]() mutable {
    sinks_.emplace(handle, std::move(sink));
    core_.requests().Submit(handle, std::move(spec), std::move(ids), clock_->Now());
    calls_.Entered(handle);
  });
  if (!posted) calls_.Entered(handle);
  return posted ? handle : 0;
}

void SchedulerLink::WakeIf(bool needed) {
  // When the mailbox is full the loop is awake, and takes the calls after emptying it.
  if (needed) (void)loop_.Post([] {});
}

void SchedulerLink::Acknowledge(uint64_t handle, int32_t position) {
  WakeIf(calls_.Acknowledge(handle, position));
}

void SchedulerLink::Cancel(uint64_t handle) { WakeIf(calls_.Cancel(handle)); }

void SchedulerLink::Finish(uint64_t handle, wire::Finish finish) {
  WakeIf(calls_.Finish(handle, std::move(finish)));
}

void SchedulerLink::TakeCalls() {
  for (auto& [handle, call] : calls_.Take()) {
    if (call.acknowledged > 0) core_.requests().Acknowledge(handle, call.acknowledged);
    if (call.finish) core_.requests().Finish(handle, *std::move(call.finish));
    if (call.cancelled) core_.requests().Cancel(handle);
    if (call.finish || call.cancelled) sinks_.erase(handle);
  }
}

PortHealth SchedulerLink::Health() const {
  MutexLock lock(&health_mutex_);
  return health_;
}

absl::Duration SchedulerLink::Pump() {
  if (stopped_) return absl::InfiniteDuration();
  TakeCalls();
  if (gate_->lost.exchange(false)) DropStream("the link's mailbox was full");
  const absl::Time now = clock_->Now();
  core_.Tick(now);
  if (core_.TakeDial(now)) Dial();
  if (core_.TakeHangUp()) HangUp();
  WriteFrames(now);
  Dispatch();
  PublishHealth();
  return std::max(core_.NextDeadline() - clock_->Now(), absl::ZeroDuration());
}

void SchedulerLink::Dial() {
  const uint64_t attempt = ++attempt_;
  // A channel per attempt: gRPC's own backoff between attempts stays out of the way.
  const std::shared_ptr<wire::Scheduler::Stub> stub =
      wire::Scheduler::NewStub(MakeChannel(target_));
  channels_.Keep(attempt, stub);
  Stream::Handlers handlers;
  handlers.on_read = [this, gate = gate_, attempt](wire::SchedulerFrame frame, ReadCredit credit) {
    // The closure keeps the credit until it has run.
    gate->Post([this, attempt, frame = std::move(frame), credit = std::move(credit)] {
      if (attempt == attempt_) core_.OnFrame(frame, clock_->Now());
    });
  };
  handlers.on_closed = [this, gate = gate_, attempt](const absl::Status& status) {
    // If it is lost, the effect is the same: the stream is dropped.
    gate->Post([this, attempt, status] { OnClosed(attempt, status); });
    channels_.Closed(attempt);
  };
  writer_ =
      Stream::Start([&stub](grpc::ClientContext* context,
                            Stream::Reactor* reactor) { stub->async()->Connect(context, reactor); },
                    std::move(handlers), kPendingFrames, kPendingBytes);
  core_.OnConnected();
}

void SchedulerLink::OnClosed(uint64_t attempt, const absl::Status& status) {
  if (attempt != attempt_) return;
  // Once per outage: redials are many.
  if (!outage_logged_) LogWarning("scheduler_lost", {{"target", target_}, {"error", status}});
  outage_logged_ = true;
  writer_ = nullptr;
  core_.OnDisconnected(clock_->Now(),
                       absl::StrCat("the scheduler at ", target_,
                                    " (--scheduler) does not answer: ", status.message()));
}

void SchedulerLink::DropStream(const char* why) {
  const absl::Status status = absl::UnavailableError(why);
  // The call is abandoned and not finished, since finishing would wait for a peer that may not
  // read.
  if (writer_ != nullptr) writer_->Abandon(status);
  OnClosed(attempt_, status);
  ++attempt_;
}

void SchedulerLink::HangUp() {
  if (writer_ != nullptr) writer_->Finish(absl::OkStatus());
}

void SchedulerLink::WriteFrames(absl::Time now) {
  while (writer_ != nullptr) {
    std::optional<wire::GatewayFrame> frame = core_.TakeFrame(now);
    if (!frame) return;
    if (writer_->Write(*std::move(frame))) continue;
    // The peer does not read, or the stream is over.
    DropStream("the stream takes no more frames");
  }
}

void SchedulerLink::Dispatch() {
  for (LinkEvent& event : core_.TakeEvents()) {
    const auto it = sinks_.find(event.handle);
    if (it == sinks_.end()) continue;
    const std::shared_ptr<GenerationSink> sink = it->second;
    if (event.finish.has_value() || !event.error.ok()) sinks_.erase(it);
    sink->OnEvent(std::move(event));
  }
}

void SchedulerLink::PublishHealth() {
  const LinkCounters& counters = core_.counters();
  if (counters.connects > published_.connects) {
    outage_logged_ = false;
    LogInfo("scheduler_connected", {{"target", target_},
                                    {"term", core_.connection().term()},
                                    {"live", core_.requests().live()}});
  }
  const auto add = [](prometheus::Counter* counter, uint64_t now, uint64_t before) {
    if (now > before) counter->Increment(static_cast<double>(now - before));
  };
  add(&metrics_->resubmitted, counters.resubmitted, published_.resubmitted);
  add(&metrics_->dropped_unknown, counters.dropped_unknown, published_.dropped_unknown);
  add(&metrics_->dropped_duplicate, counters.dropped_duplicate, published_.dropped_duplicate);
  add(&metrics_->dropped_gap, counters.dropped_gap, published_.dropped_gap);
  add(&metrics_->dropped_term, counters.dropped_term, published_.dropped_term);
  metrics_->link_up.Set(core_.connection().up() ? 1 : 0);
  published_ = counters;
  MutexLock lock(&health_mutex_);
  health_.up = core_.connection().up();
  health_.trouble = core_.connection().up() ? "" : core_.connection().WhyDown();
  health_.pair = core_.connection().pair_status();
}

}  // namespace tokenrouter
