// AttachClient is the worker's end of the Attach stream: it dials, says hello, carries frames both
// ways and sends a heartbeat every heartbeat_ms from a dedicated thread, also while a step runs.
// The inbox reports the end of a stream; the owner of the core decides when to dial again.
// Ownership: gauges and inbox must outlive it. The destructor ends the stream and waits for gRPC to
// let go of it. Threads: Connect, Send and Disconnect belong to one thread.
// Errors: Send returns false when there is no stream or its queue is full; in the latter case the
// stream has been ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "libs/concurrency/mutex.h"
#include "libs/concurrency/owner_loop.h"
#include "libs/rpc/client_stream.h"
#include "libs/rpc/open_channels.h"
#include "libs/timing/clock.h"
#include "libs/worker/process/attach_inbox.h"
#include "libs/worker/process/worker_gauges.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/scheduler.grpc.pb.h"

namespace tokenrouter {

class AttachClient {
 public:
  static constexpr absl::Duration kDefaultHeartbeat = absl::Seconds(1);

  AttachClient(std::string scheduler, const Clock* clock, const WorkerGauges* gauges,
               AttachInbox* inbox);
  ~AttachClient();

  // Ends the current stream, if any, and starts another with `hello` as its first frame.
  void Connect(wire::WorkerFrame hello);
  bool Send(wire::WorkerFrame frame);
  void Disconnect();

 private:
  using Stream = ClientStream<wire::WorkerFrame, wire::CommandFrame>;

  void OnRead(uint64_t stream, wire::CommandFrame frame, ReadCredit credit);
  void OnAttached(uint64_t stream, const wire::CommandFrame& frame);
  // Sends a heartbeat when one is due; returns the time until the next.
  absl::Duration Beat();
  std::shared_ptr<Stream::Writer> writer() const;

  const std::string scheduler_;
  const Clock& clock_;
  const WorkerGauges& gauges_;
  AttachInbox& inbox_;
  uint64_t streams_ = 0;  // Of the calling thread.

  std::atomic<int64_t> heartbeat_ms_{0};
  mutable Mutex mutex_;
  uint64_t current_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t term_ ABSL_GUARDED_BY(mutex_) = 0;  // Of the Attached of this stream; 0 before it.
  std::shared_ptr<Stream::Writer> writer_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_beat_ = absl::InfinitePast();  // Of the heartbeat thread.
  OwnerLoop heart_;
  OpenChannels channels_;  // Last: waits for gRPC, which uses everything above.
};

}  // namespace tokenrouter
