#include "tests/simulation/process/simulated_scheduler.h"

#include <algorithm>
#include <utility>

#include "libs/status/check.h"
#include "services/scheduler/core/initial_grant.h"

namespace tokenrouter::simulation {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(10);
// Without requests only liveness has to be watched.
constexpr absl::Duration kIdleTick = absl::Milliseconds(200);
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
  if (timeline_ != nullptr) timeline_->Note(name_, "starts with term ", core_->term());
}

void SimulatedScheduler::Kill() {
  if (core_ != nullptr) CutAll(/*orderly=*/false);
}

void SimulatedScheduler::Stop() {
  if (core_ != nullptr) CutAll(/*orderly=*/true);
}

void SimulatedScheduler::CutAll(bool orderly) {
  if (timeline_ != nullptr) timeline_->Note(name_, orderly ? "stops" : "dies");
  core_.reset();
  ++restarts_;
  flush_due_ = false;
  wake_at_ = absl::InfiniteFuture();
  frozen_until_ = absl::InfinitePast();
  unread_.clear();
  unwritable_.clear();
  gateway_pairs_.clear();
  worker_ids_.clear();
  degraded_.clear();
  ++generation_;
  const auto end = [this, orderly](const auto& wire) {
    if (orderly) return wire->CloseFromServer();
    wire->DropServer();
    wire->Cut(random_->Between(absl::ZeroDuration(), absl::Milliseconds(5)), absl::Hours(1));
  };
  for (const auto& [stream, wire] : std::exchange(gateways_, {})) end(wire);
  for (const auto& [stream, wire] : std::exchange(workers_, {})) end(wire);
}

void SimulatedScheduler::Freeze(absl::Duration time) {
  if (core_ != nullptr) frozen_until_ = std::max(frozen_until_, events_->now() + time);
}

absl::Status SimulatedScheduler::DrainWorker(const std::string& worker_id) {
  if (core_ == nullptr) return absl::UnavailableError("not running");
  const absl::Status drained = core_->DrainWorker(worker_id);
  FlushSoon();
  return drained;
}

void SimulatedScheduler::Take(std::function<void()> input, const std::function<void(int)>& defer) {
  if (frozen() || !unread_.empty()) {
    defer(1);
    unread_.push_back([input = std::move(input), defer] {
      defer(-1);
      input();
    });
    return;
  }
  input();
  FlushSoon();
}

template <typename Up, typename Down>
void SimulatedScheduler::Serve(const std::shared_ptr<Wire<Up, Down>>& wire,
                               std::function<void(const Up&)> on_frame,
                               std::function<void()> on_gone) {
  const auto defer = [held = std::weak_ptr<Wire<Up, Down>>(wire)](int frames) {
    if (const auto open = held.lock()) open->ServerDefers(frames);
  };
  wire->SetServer({[this, on_frame = std::move(on_frame), defer](const Up& frame) {
                     Take([on_frame, frame] { on_frame(frame); }, defer);
                   },
                   [this, on_gone = std::move(on_gone)] { Take(on_gone, [](int) {}); }});
}

bool SimulatedScheduler::Accept(const std::shared_ptr<GatewayWire>& wire) {
  if (core_ == nullptr) return false;
  const StreamId stream = next_stream_++;
  gateways_[stream] = wire;
  const auto on_frame = [this, stream](const wire::GatewayFrame& frame) {
    if (!gateways_.contains(stream)) return;
    if (frame.has_hello()) gateway_pairs_[stream] = frame.hello().pair();
    core_->OnGatewayFrame(stream, frame, events_->now());
  };
  const auto on_gone = [this, stream] {
    if (gateways_.erase(stream) > 0) core_->OnGatewayGone(stream, events_->now());
  };
  Serve<wire::GatewayFrame, wire::SchedulerFrame>(wire, on_frame, on_gone);
  return true;
}

bool SimulatedScheduler::Accept(const std::shared_ptr<WorkerWire>& wire) {
  if (core_ == nullptr) return false;
  const StreamId stream = next_stream_++;
  workers_[stream] = wire;
  const auto on_frame = [this, stream](const wire::WorkerFrame& frame) {
    if (!workers_.contains(stream)) return;
    if (frame.has_hello()) worker_ids_[stream] = frame.hello().worker_id();
    core_->OnWorkerFrame(stream, frame, events_->now());
  };
  const auto on_gone = [this, stream] {
    if (workers_.erase(stream) > 0) core_->OnWorkerGone(stream, events_->now());
  };
  Serve<wire::WorkerFrame, wire::CommandFrame>(wire, on_frame, on_gone);
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
  JudgeDegraded();
  core_->Flush(events_->now());
  JudgeDegraded();
  EndUnwritable();
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
          .step_small_ms = static_cast<double>(random_->Between(0, 20)),
          .step_large_ms = static_cast<double>(random_->Between(0, 60))};
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
  const bool idle = core_->requests().size() == 0 && !make_plans_;
  events_->After(idle ? kIdleTick : kTick, [this, generation] { Tick(generation); });
}

void SimulatedScheduler::CheckWaits() const {
  core_->requests().ForEach([this](const RequestMachine& request) {
    if (request.phase() != Phase::kWaiting) return;
    TR_CHECK(events_->now() <= request.service().wait_until)
        << "request " << request.spec().request_id() << " waits beyond its cap";
  });
}

void SimulatedScheduler::ToGateway(StreamId stream, wire::SchedulerFrame* frame) {
  const auto found = gateways_.find(stream);
  if (found == gateways_.end()) return;
  JudgeRejections(stream, *frame);
  if (!found->second->SendDown(*frame)) unwritable_.push_back(stream);
}

void SimulatedScheduler::ToWorker(StreamId stream, wire::CommandFrame* frame) {
  const auto found = workers_.find(stream);
  if (found == workers_.end()) return;
  if (!found->second->SendDown(*frame)) unwritable_.push_back(stream);
}

void SimulatedScheduler::JudgeRejections(StreamId stream, const wire::SchedulerFrame& frame) {
  if (!observer_.on_pool_given_up) return;
  for (const wire::Rejection& rejection : frame.rejections()) {
    if (rejection.reason() == kRejectReasonNames[Index(RejectReason::kLargePoolGone)]) {
      observer_.on_pool_given_up(gateway_pairs_[stream], Role::kLarge);
    } else if (rejection.reason() == kRejectReasonNames[Index(RejectReason::kNoSmallWorker)]) {
      observer_.on_pool_given_up(gateway_pairs_[stream], Role::kSmall);
    }
  }
}

// Of requests that fell back to the small model since the last look.
void SimulatedScheduler::JudgeDegraded() {
  if (!observer_.on_pool_given_up || options_.large_pool_gone != LargePoolGone::kSmallOnly) return;
  core_->requests().ForEach([this](const RequestMachine& request) {
    if (!request.service().degraded || !degraded_.insert(request.origin().key).second) return;
    observer_.on_pool_given_up(request.spec().pair(), Role::kLarge);
  });
}

void SimulatedScheduler::EndUnwritable() {
  for (const StreamId stream : std::exchange(unwritable_, {})) {
    if (timeline_ != nullptr) timeline_->Note(name_, "stream ", stream, " is full and ends");
    if (const auto found = gateways_.find(stream); found != gateways_.end()) {
      found->second->DropServer();
      found->second->Cut(absl::ZeroDuration(), absl::Hours(1));
      gateways_.erase(found);
      core_->OnGatewayGone(stream, events_->now());
    } else if (const auto worker = workers_.find(stream); worker != workers_.end()) {
      worker->second->DropServer();
      worker->second->Cut(absl::ZeroDuration(), absl::Hours(1));
      workers_.erase(worker);
      core_->OnWorkerGone(stream, events_->now());
    }
    FlushSoon();
  }
}

void SimulatedScheduler::CloseGateway(StreamId stream, const absl::Status& why) {
  if (timeline_ != nullptr)
    timeline_->Note(name_, "ends gateway stream ", stream, ": ", why.message());
  const auto found = gateways_.find(stream);
  if (found == gateways_.end()) return;
  found->second->CloseFromServer();
  gateways_.erase(found);
}

void SimulatedScheduler::CloseWorker(StreamId stream, const absl::Status& why) {
  if (timeline_ != nullptr)
    timeline_->Note(name_, "ends worker stream ", stream, ": ", why.message());
  const auto found = workers_.find(stream);
  if (found == workers_.end()) return;
  if (observer_.on_worker_judged) observer_.on_worker_judged(worker_ids_[stream], why);
  found->second->CloseFromServer();
  workers_.erase(found);
}

}  // namespace tokenrouter::simulation
