// SimulatedGateway is a gateway process on the simulated network: the real SchedulerLinkCore with
// clients that read at their own pace, cancel, or find a stop string. It records what each request
// got, and checks on the way that no token arrives twice and that credits are respected.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "services/gateway/link/scheduler_link_core.h"
#include "tests/simulation/simulated_scheduler.h"

namespace tokenrouter::simulation {

// A request and how its client behaves.
struct ClientPlan {
  wire::GenerationSpec spec;
  std::vector<TokenId> prompt;
  absl::Duration starts_after;
  absl::Duration reads_in;  // The time from a chunk to its acknowledgement.
  int cancels_after = -1;   // Generated tokens before the client cancels; -1: never.
  int stops_after = -1;     // Generated tokens at which a stop string is found; -1: never.
  Position credit_window = 0;
  Position credit_slack = 0;  // How far a verified tail may end beyond the credit.
};

// The outcome of a request.
struct ClientRecord {
  ClientPlan plan;
  bool submitted = false;
  bool ended = false;
  bool cancelled = false;
  bool stopped = false;  // Ended by its stop string.
  bool degraded = false;
  std::vector<TokenId> ids;  // The generated ids.
  std::string authors;       // One byte per id, as on the wire.
  int32_t large_alone = 0;   // Ids that were written under large-only service.
  Position acknowledged = 0;
  wire::Finish finish;
  absl::Status error;
};

class SimulatedGateway {
 public:
  SimulatedGateway(EventQueue* events, RandomSource* random, SimulatedScheduler* scheduler,
                   const std::string& id, WireDelays delays);

  void Run(const ClientPlan& plan);
  void Cut(bool half_open);
  bool AllEnded() const;
  const std::map<uint64_t, ClientRecord>& records() const { return records_; }

 private:
  void Dial();
  void OnFrame(const wire::SchedulerFrame& frame);
  void Pump();
  void OnEvent(const LinkEvent& event);
  void Read(uint64_t handle, Position position);

  EventQueue* const events_;
  RandomSource* const random_;
  SimulatedScheduler* const scheduler_;
  const WireDelays delays_;
  SchedulerLinkCore link_;
  std::shared_ptr<GatewayWire> wire_;
  std::map<uint64_t, ClientRecord> records_;
  uint64_t next_handle_ = 1;
  absl::Time pump_at_ = absl::InfiniteFuture();
};

}  // namespace tokenrouter::simulation
