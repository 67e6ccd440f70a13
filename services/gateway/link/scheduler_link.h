// SchedulerLink is the gateway's one stream to the scheduler: it runs SchedulerLinkCore on a
// dedicated thread, over gRPC. It dials, greets, redials and resubmits by itself until Stop.
// Ownership: owns its thread and its stream. Sinks are dropped after their last event.
// Threads: as SchedulerPort; sinks are called on the link's thread.
// Errors: a frame that finds the mailbox full is lost, and the stream is dropped with it: live
// requests are submitted again on a new one. While there is no scheduler, requests wait as
// LinkOptions says and then fail with UNAVAILABLE.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "libs/concurrency/mutex.h"
#include "libs/concurrency/owner_loop.h"
#include "libs/rpc/client_stream.h"
#include "libs/rpc/open_channels.h"
#include "libs/timing/clock.h"
#include "proto/packages.h"
#include "services/gateway/link/gateway_metrics.h"
#include "services/gateway/link/pending_calls.h"
#include "services/gateway/link/scheduler_link_core.h"
#include "services/gateway/link/scheduler_port.h"
#include "tokenrouter/internal/v1/scheduler.grpc.pb.h"

namespace tokenrouter {

class SchedulerLink final : public SchedulerPort {
 public:
  // The default limit of submits and frames that wait for the link's thread.
  static constexpr size_t kMailboxLimit = 65536;

  // The clock and the metrics must outlive the link.
  static std::unique_ptr<SchedulerLink> Start(LinkOptions options, const Clock* clock,
                                              GatewayMetrics* metrics,
                                              size_t mailbox_limit = kMailboxLimit);
  ~SchedulerLink() override;

  uint64_t Submit(wire::GenerationSpec spec, std::vector<int32_t> ids,
                  std::shared_ptr<GenerationSink> sink) override;
  void Acknowledge(uint64_t handle, int32_t position) override;
  void Cancel(uint64_t handle) override;
  void Finish(uint64_t handle, wire::Finish finish) override;
  PortHealth Health() const override;

  // UNAVAILABLE while the link's thread is stuck; for probes.
  absl::Status Alive() const { return loop_.Alive(kLoopWedged); }

  // Closes the stream (the scheduler cancels what was live) and joins. Idempotent.
  void Stop();

 private:
  using Stream = ClientStream<wire::GatewayFrame, wire::SchedulerFrame>;
  // The part that gRPC's threads may call after the link was destroyed.
  struct Gate;

  SchedulerLink(LinkOptions options, const Clock* clock, GatewayMetrics* metrics,
                size_t mailbox_limit);
  // Makes the loop take what is in calls_; any thread.
  void WakeIf(bool needed);
  // All below run on the loop's thread.
  absl::Duration Pump();
  void Dial();
  void OnClosed(uint64_t attempt, const absl::Status& status);
  void WriteFrames(absl::Time now);
  void Dispatch();
  void PublishHealth();
  void HangUp();
  void TakeCalls();
  // Starts again on a new stream, where live requests are submitted again.
  void DropStream(const char* why);

  const std::string target_;
  const Clock* const clock_;
  GatewayMetrics* const metrics_;
  const std::shared_ptr<Gate> gate_;
  PendingCalls calls_;
  std::atomic<uint64_t> next_handle_{1};
  std::atomic<bool> stopped_{false};

  SchedulerLinkCore core_;
  std::map<uint64_t, std::shared_ptr<GenerationSink>> sinks_;
  std::shared_ptr<Stream::Writer> writer_;  // Null while there is no call.
  uint64_t attempt_ = 0;
  LinkCounters published_;
  bool outage_logged_ = false;

  mutable Mutex health_mutex_;
  PortHealth health_ ABSL_GUARDED_BY(health_mutex_);
  OpenChannels channels_;  // Waits for gRPC, which uses the gate alone.
  OwnerLoop loop_;         // Last: its thread uses everything above.
};

}  // namespace tokenrouter
