#include "tests/simulation/process/simulated_gateway.h"

#include <algorithm>
#include <utility>

#include "libs/status/check.h"

namespace tokenrouter::simulation {
namespace {

constexpr absl::Duration kHalfOpen = absl::Seconds(15);

}  // namespace

SimulatedGateway::SimulatedGateway(EventQueue* events, RandomSource* random,
                                   const SchedulerAddress* address, LinkOptions options,
                                   WireDelays delays, const Timeline* timeline)
    : events_(events),
      random_(random),
      address_(address),
      options_(std::move(options)),
      delays_(delays),
      timeline_(timeline) {
  Start();
}

void SimulatedGateway::Start() {
  TR_CHECK(link_ == nullptr);
  ++generation_;
  frozen_until_ = absl::InfinitePast();
  pump_at_ = absl::InfiniteFuture();
  link_ = std::make_unique<SchedulerLinkCore>(options_);
  if (timeline_ != nullptr) timeline_->Note(id(), "starts");
  PumpAt(events_->now());
}

void SimulatedGateway::Kill() {
  if (link_ == nullptr) return;
  if (timeline_ != nullptr)
    timeline_->Note(id(), "dies with ", link_->requests().live(), " requests");
  ++generation_;
  link_.reset();
  unread_.clear();
  if (wire_ != nullptr) {
    wire_->DropClient();
    wire_->Cut(absl::Hours(1), random_->Between(absl::ZeroDuration(), absl::Milliseconds(5)));
    wire_.reset();
  }
  for (auto& [handle, record] : records_) {
    if (record.ended || !record.submitted()) continue;
    record.lost = true;
    End(&record);
  }
}

void SimulatedGateway::Freeze(absl::Duration time) {
  if (link_ == nullptr) return;
  frozen_until_ = std::max(frozen_until_, events_->now() + time);
  events_->At(frozen_until_, [this, generation = generation_] {
    if (generation != generation_ || frozen()) return;
    for (const wire::SchedulerFrame& frame : std::exchange(unread_, {})) {
      if (wire_ != nullptr) wire_->ClientDefers(-1);
      Take(frame);
    }
    if (wire_ == nullptr) link_->OnDisconnected(events_->now());  // It was told while suspended.
    Pump();
  });
}

void SimulatedGateway::Run(const ClientPlan& plan, int attempt) {
  const uint64_t handle = next_handle_++;
  ClientRecord& record = records_[handle];
  record.plan = plan;
  record.attempt = attempt;
  record.acknowledged = plan.spec.prompt_length();
  events_->After(plan.starts_after, [this, handle] {
    ClientRecord& record = records_[handle];
    record.submitted_at = events_->now();
    const std::string& id = record.plan.spec.request_id();
    if (timeline_ != nullptr) timeline_->Note(id, "submitted to ", options_.gateway_id);
    if (link_ == nullptr) {
      record.lost = true;
      return End(&record);
    }
    link_->requests().Submit(handle, record.plan.spec, record.plan.prompt, events_->now());
    Pump();
  });
}

void SimulatedGateway::Cut(bool half_open) {
  if (wire_ == nullptr) return;
  wire_->Cut(
      random_->Between(absl::ZeroDuration(), absl::Milliseconds(20)),
      half_open ? kHalfOpen : random_->Between(absl::ZeroDuration(), absl::Milliseconds(20)));
}

bool SimulatedGateway::AllEnded() const {
  return std::all_of(records_.begin(), records_.end(),
                     [](const auto& record) { return record.second.ended; });
}

void SimulatedGateway::Dial() {
  auto wire = std::make_shared<GatewayWire>(events_, random_, delays_);
  if (!address_->Dial()->Accept(wire)) {
    link_->OnDisconnected(events_->now());
    return;
  }
  wire_ = wire;
  wire_->SetClient({[this](const wire::SchedulerFrame& frame) { OnFrame(frame); },
                    [this] {
                      wire_.reset();
                      if (frozen()) return;  // It learns of it when it goes on.
                      link_->OnDisconnected(events_->now());
                      Pump();
                    }});
  link_->OnConnected();
}

void SimulatedGateway::OnFrame(const wire::SchedulerFrame& frame) {
  if (frozen() || !unread_.empty()) {
    wire_->ClientDefers(1);
    unread_.push_back(frame);
    return;
  }
  Take(frame);
  Pump();
}

void SimulatedGateway::Take(const wire::SchedulerFrame& frame) {
  if (timeline_ != nullptr && frame.has_welcome()) {
    timeline_->Note(id(), "is welcomed in term ", frame.term());
  }
  link_->OnFrame(frame, events_->now());
}

void SimulatedGateway::Pump() {
  if (link_ == nullptr || frozen()) return;
  const absl::Time now = events_->now();
  link_->Tick(now);
  if (link_->TakeDial(now)) Dial();
  for (const LinkEvent& event : link_->TakeEvents()) OnEvent(event);
  if (link_->TakeHangUp() && wire_ != nullptr) Disconnect(/*dropped=*/false);
  while (auto frame = link_->TakeFrame(now)) {
    TR_CHECK(wire_ != nullptr);
    if (!wire_->SendUp(*frame)) {
      if (timeline_ != nullptr) timeline_->Note(id(), "finds its stream full and drops it");
      Disconnect(/*dropped=*/true);
    }
  }
  PumpAt(link_->NextDeadline());
}

void SimulatedGateway::PumpAt(absl::Time next) {
  const absl::Time now = events_->now();
  if (next == absl::InfiniteFuture() || (pump_at_ > now && pump_at_ <= next)) return;
  pump_at_ = std::max(next, now + absl::Microseconds(100));
  events_->At(pump_at_, [this, generation = generation_] {
    if (generation != generation_) return;
    if (events_->now() >= pump_at_) pump_at_ = absl::InfiniteFuture();
    Pump();
  });
}

// Dropped: frames in flight are lost. Otherwise the stream ends after them.
void SimulatedGateway::Disconnect(bool dropped) {
  if (dropped) {
    wire_->DropClient();
    wire_->Cut(absl::Hours(1), random_->Between(absl::ZeroDuration(), absl::Milliseconds(20)));
  } else {
    wire_->CloseFromClient();
  }
  wire_.reset();
  link_->OnDisconnected(events_->now());
}

void SimulatedGateway::OnEvent(const LinkEvent& event) {
  ClientRecord& record = records_.at(event.handle);
  const std::string& id = record.plan.spec.request_id();
  TR_CHECK(!record.ended) << id << " ended twice";
  const auto committed =
      static_cast<Position>(record.plan.spec.prompt_length() + record.ids.size());
  if (!event.error.ok()) {
    record.error = event.error;
    return End(&record);
  }
  TR_CHECK(event.base_position == committed) << id;
  if (timeline_ != nullptr) {
    timeline_->Note(id, "got ", event.tokens.size(), " tokens at ", committed,
                    event.degraded ? ", degraded" : "", event.large_alone ? ", large-only" : "");
  }
  for (const TokenRecord& token : event.tokens) {
    record.ids.push_back(token.id);
    record.authors.push_back(static_cast<char>(token.author));
  }
  if (event.large_alone) record.large_alone += static_cast<int32_t>(event.tokens.size());
  record.degraded = record.degraded || event.degraded;
  const auto now_committed = static_cast<Position>(committed + event.tokens.size());
  TR_CHECK(now_committed <=
           record.acknowledged + record.plan.credit_window + record.plan.credit_slack)
      << id << " has " << now_committed << " ids, its client has acknowledged "
      << record.acknowledged << ", the window is " << record.plan.credit_window;
  if (event.finish) {
    record.finish = *event.finish;
    return End(&record);
  }
  const auto generated = static_cast<int>(record.ids.size());
  const bool pauses =
      !record.paused && record.plan.pauses_after >= 0 && generated >= record.plan.pauses_after;
  record.paused = record.paused || pauses;
  const absl::Duration reads_in =
      record.plan.reads_in + (pauses ? record.plan.pause : absl::ZeroDuration());
  events_->After(reads_in, [this, generation = generation_, handle = event.handle, now_committed] {
    if (generation == generation_) Read(handle, now_committed);
  });
}

void SimulatedGateway::Read(uint64_t handle, Position position) {
  if (frozen()) {
    events_->At(frozen_until_, [this, generation = generation_, handle, position] {
      if (generation == generation_) Read(handle, position);
    });
    return;
  }
  ClientRecord& record = records_.at(handle);
  if (record.ended) return;
  const Position generated = position - record.plan.spec.prompt_length();
  record.acknowledged = std::max(record.acknowledged, position);
  if (record.plan.cancels_after >= 0 && generated >= record.plan.cancels_after) {
    record.cancelled = true;
    link_->requests().Cancel(handle);
    End(&record);
  } else if (record.plan.stops_after >= 0 && generated >= record.plan.stops_after) {
    record.stopped = true;
    wire::Finish finish;
    finish.set_position(record.plan.spec.prompt_length() + record.plan.stops_after);
    finish.set_reason(api::FINISH_REASON_STOP);
    link_->requests().Finish(handle, finish);
    End(&record);
  } else {
    link_->requests().Acknowledge(handle, position);
  }
  Pump();
}

void SimulatedGateway::End(ClientRecord* record) {
  record->ended = true;
  record->ended_at = events_->now();
  if (timeline_ != nullptr) {
    const std::string how = record->lost        ? "is lost with its gateway"
                            : record->cancelled ? "is cancelled by its client"
                            : record->stopped   ? "reaches its stop string"
                            : !record->error.ok()
                                ? absl::StrCat("fails: ", record->error.ToString())
                                : absl::StrCat("ends: ", record->finish.ShortDebugString());
    timeline_->Note(record->plan.spec.request_id(), how, " after ", record->ids.size(), " tokens");
  }
  if (on_end_) on_end_(*record);
}

}  // namespace tokenrouter::simulation
