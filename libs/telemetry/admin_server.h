// AdminServer answers GET /metrics, /livez, /readyz and the pages it is given on a port of its own,
// with its own thread, so that probes and scrapes never wait for serving work. Ownership: owns its
// thread and sockets; the registry must outlive it. The destructor stops it. Threads: callbacks run
// on the admin thread and must be thread-safe and quick. Errors: UNAVAILABLE when the address
// cannot be bound; INVALID_ARGUMENT when it is not host:port.
#pragma once

#include <prometheus/registry.h>

#include <functional>
#include <map>
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
    // OK: /livez is 200. Otherwise 503 with the message: whoever watches the process ends it.
    std::function<absl::Status()> alive = [] { return absl::OkStatus(); };
    // OK: /readyz is 200. Otherwise 503 with the message.
    std::function<absl::Status()> ready = [] { return absl::OkStatus(); };
    // By path ("/state"): JSON documents. An error is answered with 503 and its message.
    std::map<std::string, std::function<absl::StatusOr<std::string>()>> pages;
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
