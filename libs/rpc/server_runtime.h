// ServerRuntime is what every gRPC server of the project shares: listening, limits, keepalive,
// health, reflection, drain. Ownership: owns the server; services are the caller's and must outlive
// it. The destructor stops it. Threads: all methods are thread-safe after Start. Errors:
// UNAVAILABLE when the address cannot be bound.
#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "libs/rpc/keepalive.h"

namespace tokenrouter {

class ServerRuntime {
 public:
  struct Options {
    std::string address;                   // host:port; port 0 picks a free one.
    std::vector<grpc::Service*> services;  // Callback services.
    // Largest message it takes; a larger one ends its call with RESOURCE_EXHAUSTED. The default is
    // what our own processes may send each other: a port for clients sets less.
    int max_message_bytes = kMaxMessageBytes;
  };

  // grpc.health.v1 answers SERVING for "" (alive) from the start, for "ready" by SetReady.
  static absl::StatusOr<std::unique_ptr<ServerRuntime>> Start(const Options& options);
  ~ServerRuntime();

  int port() const { return port_; }
  // Readiness under the health name "ready"; Watch sees every change.
  void SetReady(bool ready);
  // Refuses new calls, lets running ones end until `grace` has passed, then cancels them.
  // Idempotent.
  void Drain(absl::Duration grace);

 private:
  ServerRuntime() = default;

  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace tokenrouter
