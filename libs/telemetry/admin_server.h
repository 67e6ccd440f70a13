// AdminServer answers GET /metrics, /livez and /readyz on a port of its own, with its own thread,
// so that probes and scrapes never wait for serving work. Ownership: owns its thread and sockets;
// the registry must outlive it. The destructor stops it. Threads: the readiness callback runs on
// the admin thread and must be thread-safe and quick. Errors: UNAVAILABLE when the address cannot
// be bound; INVALID_ARGUMENT when it is not host:port.
#pragma once

#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tokenrouter {

class AdminServer {
 public:
  struct Options {
    std::string address;  // host:port; port 0 picks a free one.
    const prometheus::Registry* registry = nullptr;
    // OK: /readyz is 200. Otherwise 503 with the message.
    std::function<absl::Status()> ready = [] { return absl::OkStatus(); };
  };

  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(Options options);
  ~AdminServer();

  int port() const;

 private:
  struct Impl;
  explicit AdminServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenrouter
