// SchedulerServer runs SchedulerCore as a process: gRPC streams, one loop that owns the core,
// metrics and the admin port.
// Ownership: owns everything it starts. The destructor stops it.
// Threads: Start, Drain and the destructor belong to one thread; the rest is internal.
// Errors: UNAVAILABLE when an address cannot be bound.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "services/scheduler/server/scheduler_options.h"

namespace tokenrouter {

class SchedulerServer {
 public:
  static absl::StatusOr<std::unique_ptr<SchedulerServer>> Start(const SchedulerOptions& options);
  ~SchedulerServer();

  int port() const;
  int admin_port() const;
  // Refuses new requests, lets those in flight end for up to `options.drain`, then ends all
  // streams. Idempotent.
  void Drain();

 private:
  class Impl;
  explicit SchedulerServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenrouter
