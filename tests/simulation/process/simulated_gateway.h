// SimulatedGateway is a gateway process on the simulated network: the real SchedulerLinkCore with
// clients that read at their own pace, pause, cancel, or find a stop string. It can be killed (its
// requests end, as far as their clients see), cut off, or suspended. It records what each request
// got, and checks on the way that no token arrives twice and that credits are respected.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "services/gateway/link/scheduler_link_core.h"
#include "tests/simulation/process/client.h"
#include "tests/simulation/process/scheduler_address.h"
#include "tests/simulation/process/simulated_scheduler.h"

namespace tokenrouter::simulation {

class SimulatedGateway {
 public:
  // A process that serves at once. `timeline` may be null.
  SimulatedGateway(EventQueue* events, RandomSource* random, const SchedulerAddress* address,
                   LinkOptions options, WireDelays delays, const Timeline* timeline = nullptr);

  // Submits a request after its time; `attempt` as in ClientRecord. A dead gateway refuses it.
  void Run(const ClientPlan& plan, int attempt = 0);
  void Cut(bool half_open);
  void Kill();
  void Start();
  // The process is suspended for `time`: it reads nothing and its timers do not run.
  void Freeze(absl::Duration time);
  bool running() const { return link_ != nullptr; }
  bool AllEnded() const;
  const std::string& id() const { return options_.gateway_id; }
  const std::string& pair() const { return options_.pair; }
  const std::map<uint64_t, ClientRecord>& records() const { return records_; }
  // Called for each request that ends, however that happens; may be empty.
  void OnEnd(std::function<void(const ClientRecord&)> on_end) { on_end_ = std::move(on_end); }

 private:
  bool frozen() const { return events_->now() < frozen_until_; }
  void Dial();
  void Disconnect(bool dropped);
  void OnFrame(const wire::SchedulerFrame& frame);
  void Take(const wire::SchedulerFrame& frame);
  void Pump();
  void PumpAt(absl::Time when);
  void OnEvent(const LinkEvent& event);
  void Read(uint64_t handle, Position position);
  void End(ClientRecord* record);

  EventQueue* const events_;
  RandomSource* const random_;
  const SchedulerAddress* const address_;
  const LinkOptions options_;
  const WireDelays delays_;
  const Timeline* const timeline_;
  std::function<void(const ClientRecord&)> on_end_;
  std::unique_ptr<SchedulerLinkCore> link_;  // Null: the process is dead.
  std::shared_ptr<GatewayWire> wire_;
  int generation_ = 0;  // Number of this process; old events of earlier ones are ignored.
  absl::Time frozen_until_ = absl::InfinitePast();
  std::vector<wire::SchedulerFrame> unread_;  // Frames that arrived while it was suspended.
  std::map<uint64_t, ClientRecord> records_;
  uint64_t next_handle_ = 1;
  absl::Time pump_at_ = absl::InfiniteFuture();
};

}  // namespace tokenrouter::simulation
