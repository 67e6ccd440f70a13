#include "services/scheduler/server/scheduler_server.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "libs/concurrency/mutex.h"
#include "libs/rpc/server_runtime.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/telemetry/admin_server.h"
#include "libs/telemetry/log.h"
#include "libs/timing/real_clock.h"
#include "services/scheduler/core/initial_grant.h"
#include "services/scheduler/core/scheduler_core.h"
#include "services/scheduler/server/plan_runner.h"
#include "services/scheduler/server/scheduler_metrics.h"
#include "services/scheduler/server/scheduler_service.h"
#include "services/scheduler/server/state_page.h"

namespace tokenrouter {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(10);
constexpr absl::Duration kPublish = absl::Milliseconds(250);
// Time for streams to end by themselves.
constexpr absl::Duration kStreamGrace = absl::Milliseconds(500);

// Everything that is live may have to be opened at once, on one worker: 5 bytes an id at most.
size_t PendingBytes(const CoreOptions& options) {
  constexpr size_t kIdBytes = 5;
  return std::max(kDefaultPendingBytes, kIdBytes * static_cast<size_t>(options.max_ids));
}

OwnerLoop::Options LoopOptions(std::function<absl::Duration()> idle) {
  OwnerLoop::Options options;
  options.name = "scheduler";
  options.idle = std::move(idle);
  return options;
}

}  // namespace

class SchedulerServer::Impl : public Output {
 public:
  explicit Impl(const SchedulerOptions& options)
      : options_(options),
        loop_(LoopOptions([this] { return AfterBatch(); })),
        gateways_(&loop_, {[this](StreamId stream, const wire::GatewayFrame& frame) {
                             Handle(frame.has_hello(), "gateway", frame.hello().gateway_id(),
                                    stream, [&] { core_.OnGatewayFrame(stream, frame, Now()); });
                           },
                           [this](StreamId stream) {
                             LogInfo("gateway_gone", {{"stream", stream}});
                             core_.OnGatewayGone(stream, Now());
                           }}),
        workers_(&loop_,
                 {[this](StreamId stream, const wire::WorkerFrame& frame) {
                    Handle(frame.has_hello(), "worker", frame.hello().worker_id(), stream,
                           [&] { core_.OnWorkerFrame(stream, frame, Now()); });
                  },
                  [this](StreamId stream) {
                    LogWarning("worker_gone", {{"stream", stream}});
                    core_.OnWorkerGone(stream, Now());
                  }},
                 PendingBytes(options.core)),
        metrics_(&registry_),
        core_(options.core, static_cast<uint64_t>(absl::ToUnixMillis(absl::Now())),
              {.opening = InitialGrant, .on_end = LogEnd, .output = this}),
        service_(&loop_, &gateways_, &workers_,
                 [this](wire::GetStateReply* reply) { core_.FillState(Now(), reply); }) {}

  ~Impl() override { Stop(); }

  absl::Status Start() {
    const uint64_t term = core_.term();  // From here on the loop's.
    loop_.Start();
    TR_ASSIGN_OR_RETURN(
        runtime_, ServerRuntime::Start({.address = options_.listen, .services = {&service_}}));
    TR_ASSIGN_OR_RETURN(
        admin_, AdminServer::Start({.address = options_.admin,
                                    .registry = &registry_,
                                    .alive = [this] { return loop_.Alive(kLoopWedged); },
                                    .ready =
                                        [this] {
                                          return draining_ ? absl::UnavailableError("draining")
                                                           : absl::OkStatus();
                                        },
                                    .pages = {{"/state", [this] {
                                                 return StatePage(&loop_, [this](auto* reply) {
                                                   core_.FillState(Now(), reply);
                                                 });
                                               }}}}));
    runtime_->SetReady(true);
    LogInfo("listening", {{"name", "grpc"}, {"port", runtime_->port()}});
    LogInfo("listening", {{"name", "admin"}, {"port", admin_->port()}});
    LogInfo("ready", {{"term", term}});
    return absl::OkStatus();
  }

  int port() const { return runtime_->port(); }
  int admin_port() const { return admin_->port(); }

  // New requests are served as ever: what is not over in time moves to the next scheduler and loses
  // nothing, while a refused request would be lost.
  void Drain() {
    // After a failed start there is nothing to drain.
    if (draining_.exchange(true) || runtime_ == nullptr) return;
    runtime_->SetReady(false);
    const absl::Time deadline = Now() + options_.drain;
    MutexLock lock(&mutex_);
    while (live_ > 0 && Now() < deadline) live_changed_.WaitFor(&mutex_, deadline - Now());
  }

  // ---- Output, on the loop ----
  void ToGateway(StreamId stream, wire::SchedulerFrame* frame) override {
    gateways_.Send(stream, frame);
  }
  void ToWorker(StreamId stream, wire::CommandFrame* frame) override {
    workers_.Send(stream, frame);
  }
  void CloseGateway(StreamId stream, const absl::Status& why) override {
    LogWarning("gateway_closed", {{"stream", stream}, {"why", why}});
    gateways_.Close(stream, why);
  }
  void CloseWorker(StreamId stream, const absl::Status& why) override {
    LogWarning("worker_closed", {{"stream", stream}, {"why", why}});
    workers_.Close(stream, why);
  }

 private:
  static absl::Time Now() { return RealClock::Get().Now(); }

  static void LogEnd(const RequestMachine& request, absl::Time now) {
    LogInfo("request_ended",
            {{"request_id", request.spec().request_id()},
             {"phase", request.phase().name()},
             {"small_tokens", request.history().written_by(Author::kSmall)},
             {"large_tokens", request.history().written_by(Author::kLarge)},
             {"seconds", absl::ToDoubleSeconds(now - request.origin().submitted_at)}});
  }

  template <typename Action>
  void Handle(bool hello, const char* kind, const std::string& id, StreamId stream,
              const Action& action) {
    if (hello) LogInfo("hello", {{"peer", kind}, {"id", id}, {"stream", stream}});
    const absl::Time begin = Now();
    action();
    metrics_.ObserveFrame(Now() - begin);
  }

  // After each batch of frames, and when a timer may be due. Returns how long the loop may sleep.
  absl::Duration AfterBatch() {
    const absl::Time now = Now();
    if (now - last_tick_ >= kTick) {
      // Stopped, starved of a processor, or behind with the mailbox: what the workers said still
      // waits to be read.
      const absl::Time heard = std::min(last_tick_, loop_.heard_until());
      if (now - heard > options_.core.heartbeat) core_.ResetLiveness(now);
      last_tick_ = now;
      core_.OnTick(now);
      Plan(now);
    }
    core_.Flush(now);
    // The end of a stream that the flush discovered produces more frames.
    while (SettlePeers()) core_.Flush(now);
    if (now - last_publish_ >= kPublish) {
      last_publish_ = now;
      metrics_.Publish(core_, now);
    }
    PublishLive();
    const absl::Time next = std::min(last_tick_ + kTick, core_.NextDeadline());
    return std::max(absl::ZeroDuration(), next - now);
  }

  void Plan(absl::Time now) {
    for (const PlanRunner::Done& done : planner_.TakeDone()) {
      core_.AdoptPlan(done.pair, done.plan, done.cost, now);
    }
    for (const PlanInputs& inputs : core_.WantedPlans(now)) planner_.Start(inputs);
  }

  // Settles both kinds of streams. True when a stream has ended.
  bool SettlePeers() {
    const bool gateways = gateways_.Settle();
    const bool workers = workers_.Settle();
    return gateways || workers;
  }

  void PublishLive() {
    const int live = core_.requests().size();
    MutexLock lock(&mutex_);
    if (live == live_) return;
    live_ = live;
    live_changed_.SignalAll();
  }

  void Stop() {
    Drain();
    if (runtime_ != nullptr) runtime_->Drain(kStreamGrace);
    runtime_.reset();  // After this no stream can post.
    loop_.Stop();
  }

  const SchedulerOptions options_;
  prometheus::Registry registry_;
  OwnerLoop loop_;
  GatewayStreams gateways_;
  WorkerStreams workers_;
  // Owned by the loop.
  SchedulerMetrics metrics_;
  SchedulerCore core_;
  PlanRunner planner_;
  absl::Time last_tick_ = absl::InfinitePast();
  absl::Time last_publish_ = absl::InfinitePast();

  SchedulerService service_;
  std::unique_ptr<ServerRuntime> runtime_;
  std::unique_ptr<AdminServer> admin_;
  std::atomic<bool> draining_{false};
  Mutex mutex_;
  CondVar live_changed_;
  int live_ ABSL_GUARDED_BY(mutex_) = 0;
};

SchedulerServer::SchedulerServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SchedulerServer::~SchedulerServer() = default;

absl::StatusOr<std::unique_ptr<SchedulerServer>> SchedulerServer::Start(
    const SchedulerOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  TR_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<SchedulerServer>(new SchedulerServer(std::move(impl)));
}

int SchedulerServer::port() const { return impl_->port(); }
int SchedulerServer::admin_port() const { return impl_->admin_port(); }
void SchedulerServer::Drain() { impl_->Drain(); }

}  // namespace tokenrouter
