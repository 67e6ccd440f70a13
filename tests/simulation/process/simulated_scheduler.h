// SimulatedScheduler is a scheduler process on the simulated network: the real SchedulerCore, which
// can be killed and started again with a new term at any time, or be one of two.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "services/scheduler/core/scheduler_core.h"
#include "tests/simulation/process/event_queue.h"
#include "tests/simulation/process/random_source.h"
#include "tests/simulation/process/timeline.h"
#include "tests/simulation/process/wire.h"

namespace tokenrouter::simulation {

using GatewayWire = Wire<wire::GatewayFrame, wire::SchedulerFrame>;
using WorkerWire = Wire<wire::WorkerFrame, wire::CommandFrame>;

class SimulatedScheduler : public Output {
 public:
  // What checks want to judge at the moment at which it is decided; both may be empty.
  struct Observer {
    // It gives up on a pool: a request ended, or is degraded, because the pool is empty.
    std::function<void(const std::string& pair, Role role)> on_pool_given_up;
    // It ends the stream of a worker; UNAVAILABLE: it takes it for dead.
    std::function<void(const std::string& worker_id, const absl::Status& why)> on_worker_judged;
  };

  // `timeline` may be null.
  SimulatedScheduler(EventQueue* events, RandomSource* random, CoreOptions options,
                     std::string name = "scheduler", const Timeline* timeline = nullptr)
      : events_(events),
        random_(random),
        name_(std::move(name)),
        timeline_(timeline),
        options_(options) {}
  void Observe(Observer observer) { observer_ = std::move(observer); }

  // `clock_skew` is added to the wall clock from which the term is made.
  void Start(absl::Duration clock_skew);
  void Kill();
  // An orderly end: peers are told, after everything that was sent to them before.
  void Stop();
  // The process is suspended for `time`; frames that arrive wait.
  void Freeze(absl::Duration time);
  // Deferral follows the plans that a real scheduler would make. Otherwise plans are drawn at
  // random; any plan must do, since answers depend on none.
  void MakePlans() { make_plans_ = true; }
  // The mode is in force from now on, in this process and in later ones.
  void ForceMode(ServiceMode mode) {
    options_.forced_mode = mode;
    if (core_ != nullptr) core_->ForceMode(mode);
  }
  bool running() const { return core_ != nullptr; }
  // REQUIRES: running().
  const SchedulerCore& core() const { return *core_; }
  const std::string& name() const { return name_; }
  int restarts() const { return restarts_; }
  absl::Status DrainWorker(const std::string& worker_id);
  uint64_t expired_leases() const { return expired_leases_; }

  // A client dials; false when no scheduler is running.
  bool Accept(const std::shared_ptr<GatewayWire>& wire);
  bool Accept(const std::shared_ptr<WorkerWire>& wire);

  void ToGateway(StreamId stream, wire::SchedulerFrame* frame) override;
  void ToWorker(StreamId stream, wire::CommandFrame* frame) override;
  void CloseGateway(StreamId stream, const absl::Status& why) override;
  void CloseWorker(StreamId stream, const absl::Status& why) override;

 private:
  bool frozen() const { return events_->now() < frozen_until_; }
  // `defer` counts frames that stay unread on their wire.
  void Take(std::function<void()> input, const std::function<void(int)>& defer);
  // Takes all that comes over an accepted stream.
  template <typename Up, typename Down>
  void Serve(const std::shared_ptr<Wire<Up, Down>>& wire, std::function<void(const Up&)> on_frame,
             std::function<void()> on_gone);
  void CutAll(bool orderly);
  void JudgeRejections(StreamId stream, const wire::SchedulerFrame& frame);
  void JudgeDegraded();
  void EndUnwritable();
  void FlushSoon();
  void Tick(int generation);
  void Flush();
  void AdoptPlans();
  BatchingPolicy PolicyFor(const PlanInputs& wanted);
  void CheckWaits() const;

  EventQueue* const events_;
  RandomSource* const random_;
  const std::string name_;
  const Timeline* const timeline_;
  Observer observer_;
  CoreOptions options_;
  std::unique_ptr<SchedulerCore> core_;
  int generation_ = 0;
  int restarts_ = 0;
  uint64_t expired_leases_ = 0;
  bool flush_due_ = false;
  bool make_plans_ = false;
  absl::Time last_tick_;
  absl::Time wake_at_ = absl::InfiniteFuture();  // When the core's next deadline is due.
  absl::Time frozen_until_ = absl::InfinitePast();
  std::vector<std::function<void()>> unread_;  // Inputs that arrived while it was suspended.
  StreamId next_stream_ = 1;
  std::map<StreamId, std::shared_ptr<GatewayWire>> gateways_;
  std::map<StreamId, std::shared_ptr<WorkerWire>> workers_;
  std::vector<StreamId> unwritable_;  // Streams whose wire is full.
  std::map<StreamId, std::string> gateway_pairs_;
  std::map<StreamId, std::string> worker_ids_;
  std::set<uint64_t> degraded_;  // Requests that are marked so already.
};

}  // namespace tokenrouter::simulation
