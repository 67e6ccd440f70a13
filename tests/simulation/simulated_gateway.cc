#include "tests/simulation/simulated_gateway.h"

#include <algorithm>

#include "libs/status/check.h"

namespace tokenrouter::simulation {
namespace {

constexpr absl::Duration kHalfOpen = absl::Seconds(15);

LinkOptions OptionsOf(const std::string& id) {
  LinkOptions options;
  options.gateway_id = id;
  options.pair = "pair";
  options.tokenizer_fingerprint = "tokenizer";
  // Faults end before these waits do, so that every request must be answered.
  options.submit_wait = absl::Seconds(60);
  options.resume_wait = absl::Seconds(60);
  return options;
}

}  // namespace

SimulatedGateway::SimulatedGateway(EventQueue* events, RandomSource* random,
                                   SimulatedScheduler* scheduler, const std::string& id,
                                   WireDelays delays)
    : events_(events),
      random_(random),
      scheduler_(scheduler),
      delays_(delays),
      link_(OptionsOf(id)) {}

void SimulatedGateway::Run(const ClientPlan& plan) {
  const uint64_t handle = next_handle_++;
  ClientRecord& record = records_[handle];
  record.plan = plan;
  record.acknowledged = plan.spec.prompt_length();
  events_->After(plan.starts_after, [this, handle] {
    ClientRecord& record = records_[handle];
    record.submitted = true;
    link_.Submit(handle, record.plan.spec, record.plan.prompt, events_->now());
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
  if (!scheduler_->Accept(wire)) {
    link_.OnDisconnected(events_->now());
    return;
  }
  wire_ = wire;
  wire_->SetClient({[this](const wire::SchedulerFrame& frame) { OnFrame(frame); },
                    [this] {
                      wire_.reset();
                      link_.OnDisconnected(events_->now());
                      Pump();
                    }});
  link_.OnConnected(events_->now());
}

void SimulatedGateway::OnFrame(const wire::SchedulerFrame& frame) {
  link_.OnFrame(frame, events_->now());
  Pump();
}

void SimulatedGateway::Pump() {
  const absl::Time now = events_->now();
  link_.Tick(now);
  if (link_.TakeDial(now)) Dial();
  for (const LinkEvent& event : link_.TakeEvents()) OnEvent(event);
  if (link_.TakeHangUp() && wire_ != nullptr) {
    wire_->CloseFromClient();
    wire_.reset();
    link_.OnDisconnected(now);
  }
  while (auto frame = link_.TakeFrame(now)) {
    TR_CHECK(wire_ != nullptr);
    wire_->SendUp(*frame);
  }
  const absl::Time next = link_.NextDeadline();
  if (next == absl::InfiniteFuture() || (pump_at_ > now && pump_at_ <= next)) return;
  pump_at_ = std::max(next, now + absl::Microseconds(100));
  events_->At(pump_at_, [this] {
    if (events_->now() >= pump_at_) pump_at_ = absl::InfiniteFuture();
    Pump();
  });
}

void SimulatedGateway::OnEvent(const LinkEvent& event) {
  ClientRecord& record = records_.at(event.handle);
  const std::string& id = record.plan.spec.request_id();
  TR_CHECK(!record.ended) << id << " ended twice";
  const auto committed =
      static_cast<Position>(record.plan.spec.prompt_length() + record.ids.size());
  if (!event.error.ok()) {
    record.ended = true;
    record.error = event.error;
    return;
  }
  TR_CHECK(event.base_position == committed) << id;
  record.ids.insert(record.ids.end(), event.ids.begin(), event.ids.end());
  record.authors += event.authors;
  if (event.large_alone) record.large_alone += static_cast<int32_t>(event.ids.size());
  record.degraded = record.degraded || event.degraded;
  const auto now_committed = static_cast<Position>(committed + event.ids.size());
  TR_CHECK(now_committed <=
           record.acknowledged + record.plan.credit_window + record.plan.credit_slack)
      << id << " has " << now_committed << " ids, its client has acknowledged "
      << record.acknowledged << ", the window is " << record.plan.credit_window;
  if (event.finish) {
    record.ended = true;
    record.finish = *event.finish;
    return;
  }
  events_->After(record.plan.reads_in,
                 [this, handle = event.handle, now_committed] { Read(handle, now_committed); });
}

void SimulatedGateway::Read(uint64_t handle, Position position) {
  ClientRecord& record = records_.at(handle);
  if (record.ended) return;
  const Position generated = position - record.plan.spec.prompt_length();
  record.acknowledged = std::max(record.acknowledged, position);
  if (record.plan.cancels_after >= 0 && generated >= record.plan.cancels_after) {
    record.ended = record.cancelled = true;
    link_.Cancel(handle);
  } else if (record.plan.stops_after >= 0 && generated >= record.plan.stops_after) {
    record.ended = record.stopped = true;
    wire::Finish finish;
    finish.set_position(record.plan.spec.prompt_length() + record.plan.stops_after);
    finish.set_reason(api::FINISH_REASON_STOP);
    link_.Finish(handle, finish);
  } else {
    link_.Acknowledge(handle, position);
  }
  Pump();
}

}  // namespace tokenrouter::simulation
