#include "tests/simulation/simulated_scheduler.h"

#include <algorithm>
#include <utility>

#include "libs/status/check.h"
#include "services/scheduler/core/initial_grant.h"

namespace tokenrouter::simulation {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(10);
constexpr absl::Duration kFlushDelay = absl::Microseconds(20);

}  // namespace

void SimulatedScheduler::Start(absl::Duration clock_skew) {
  TR_CHECK(core_ == nullptr);
  const absl::Time wall_clock = events_->now() + clock_skew;
  core_ = std::make_unique<SchedulerCore>(
      options_, static_cast<uint64_t>(absl::ToUnixMillis(wall_clock)),
      SchedulerCore::Parts{.opening = InitialGrant, .on_end = {}, .output = this});
  last_tick_ = events_->now();
  const int generation = ++generation_;
  events_->After(kTick, [this, generation] { Tick(generation); });
}

void SimulatedScheduler::Kill() {
  if (core_ == nullptr) return;
  core_.reset();
  ++restarts_;
  flush_due_ = false;
  wake_at_ = absl::InfiniteFuture();
  frozen_until_ = absl::InfinitePast();
  unread_.clear();
  ++generation_;
  for (const auto& [stream, wire] : std::exchange(gateways_, {})) {
    wire->DropServer();
    wire->Cut(random_->Between(absl::ZeroDuration(), absl::Milliseconds(5)), absl::Hours(1));
  }
  for (const auto& [stream, wire] : std::exchange(workers_, {})) {
    wire->DropServer();
    wire->Cut(random_->Between(absl::ZeroDuration(), absl::Milliseconds(5)), absl::Hours(1));
  }
}

void SimulatedScheduler::Freeze(absl::Duration time) {
  if (core_ != nullptr) frozen_until_ = std::max(frozen_until_, events_->now() + time);
}

void SimulatedScheduler::Take(std::function<void()> input) {
  if (frozen() || !unread_.empty()) {
    unread_.push_back(std::move(input));
    return;
  }
  input();
  FlushSoon();
}

bool SimulatedScheduler::Accept(const std::shared_ptr<GatewayWire>& wire) {
  if (core_ == nullptr) return false;
  const StreamId stream = next_stream_++;
  gateways_[stream] = wire;
  wire->SetServer({[this, stream](const wire::GatewayFrame& frame) {
                     Take([this, stream, frame] {
                       if (!gateways_.contains(stream)) return;
                       core_->OnGatewayFrame(stream, frame, events_->now());
                     });
                   },
                   [this, stream] {
                     Take([this, stream] {
                       if (gateways_.erase(stream) == 0) return;
                       core_->OnGatewayGone(stream, events_->now());
                     });
                   }});
  return true;
}

bool SimulatedScheduler::Accept(const std::shared_ptr<WorkerWire>& wire) {
  if (core_ == nullptr) return false;
  const StreamId stream = next_stream_++;
  workers_[stream] = wire;
  wire->SetServer({[this, stream](const wire::WorkerFrame& frame) {
                     Take([this, stream, frame] {
                       if (!workers_.contains(stream)) return;
                       core_->OnWorkerFrame(stream, frame, events_->now());
                     });
                   },
                   [this, stream] {
                     Take([this, stream] {
                       if (workers_.erase(stream) == 0) return;
                       core_->OnWorkerGone(stream, events_->now());
                     });
                   }});
  return true;
}

void SimulatedScheduler::FlushSoon() {
  if (std::exchange(flush_due_, true)) return;
  events_->After(kFlushDelay, [this, generation = generation_] {
    if (generation != generation_) return;
    flush_due_ = false;
    if (!frozen()) Flush();
  });
}

void SimulatedScheduler::Flush() {
  core_->Flush(events_->now());
  const absl::Time next = core_->NextDeadline();
  // A past deadline would mean that the flush left it open, and time would never advance.
  TR_CHECK(next > events_->now()) << "a deadline lies in the past after a flush";
  if (next == absl::InfiniteFuture() || (wake_at_ > events_->now() && wake_at_ <= next)) return;
  wake_at_ = next;
  events_->At(next, [this, generation = generation_, next] {
    if (generation != generation_ || wake_at_ != next) return;
    wake_at_ = absl::InfiniteFuture();
    if (!frozen()) Flush();
  });
}

BatchingPolicy SimulatedScheduler::PolicyFor(const PlanInputs& wanted) {
  if (make_plans_) {
    const absl::StatusOr<PairPlan> plan = MakePlan(wanted);
    TR_CHECK(plan.ok()) << plan.status();
    return plan->prediction.policy;
  }
  return {.kind = BatchingPolicy::Kind::kModel,
          .m_large = static_cast<int>(random_->Between(1, wanted.requests)),
          .beta = 0.1 * static_cast<double>(random_->Between(3, 20))};
}

void SimulatedScheduler::AdoptPlans() {
  for (const PlanInputs& wanted : core_->WantedPlans(events_->now())) {
    // The plan favours routing, because the mode is drawn elsewhere.
    const PairPlan plan{.inputs = wanted,
                        .prediction = {.policy = PolicyFor(wanted),
                                       .routed_per_s = 2,
                                       .large_alone_per_s = 1,
                                       .routed_ms_per_token = 1,
                                       .large_alone_ms_per_token = 1000}};
    core_->AdoptPlan(wanted.pair, plan, absl::Microseconds(1), events_->now());
  }
}

void SimulatedScheduler::Tick(int generation) {
  if (generation != generation_) return;
  if (frozen()) {
    events_->At(frozen_until_, [this, generation] { Tick(generation); });
    return;
  }
  for (const auto& input : std::exchange(unread_, {})) input();
  // The server does the same.
  if (events_->now() - last_tick_ > options_.heartbeat) core_->ResetLiveness(events_->now());
  last_tick_ = events_->now();
  core_->OnTick(events_->now());
  AdoptPlans();
  Flush();
  CheckWaits();
  for (const auto& leases : core_->counters().leases) {
    expired_leases_ += leases[Index(LeaseOutcome::kExpired)];
  }
  events_->After(kTick, [this, generation] { Tick(generation); });
}

void SimulatedScheduler::CheckWaits() const {
  core_->requests().ForEach([this](const RequestMachine& request) {
    if (request.phase() != Phase::kWaiting) return;
    TR_CHECK(events_->now() <= request.wait_until())
        << "request " << request.spec().request_id() << " waits beyond its cap";
  });
}

void SimulatedScheduler::ToGateway(StreamId stream, wire::SchedulerFrame* frame) {
  if (const auto found = gateways_.find(stream); found != gateways_.end()) {
    found->second->SendDown(*frame);
  }
}

void SimulatedScheduler::ToWorker(StreamId stream, wire::CommandFrame* frame) {
  if (const auto found = workers_.find(stream); found != workers_.end()) {
    found->second->SendDown(*frame);
  }
}

void SimulatedScheduler::CloseGateway(StreamId stream, const absl::Status& /*why*/) {
  const auto found = gateways_.find(stream);
  if (found == gateways_.end()) return;
  found->second->CloseFromServer();
  gateways_.erase(found);
}

void SimulatedScheduler::CloseWorker(StreamId stream, const absl::Status& /*why*/) {
  const auto found = workers_.find(stream);
  if (found == workers_.end()) return;
  found->second->CloseFromServer();
  workers_.erase(found);
}

}  // namespace tokenrouter::simulation
