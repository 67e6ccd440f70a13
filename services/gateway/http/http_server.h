// HttpServer serves HTTP/1.1 with keep-alive and pipelining: it reads requests within limits, runs
// the handler's calls and notices clients that leave while they wait. One coroutine per connection,
// a few threads for all. Ownership: owns threads and sockets; the handler must outlive it. The
// destructor stops it. Threads: all methods are thread-safe after Start. A call runs on its
// connection's strand. Memory: per connection at most header limit + body limit + 64 KiB of
// pipelined bytes + what a call has produced; all bodies together at most their budget, which holds
// until the handler has made a call of them. Errors: Start: UNAVAILABLE when the address cannot be
// bound, INVALID_ARGUMENT when it is not host:port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/gateway/http/http_call.h"

namespace tokenrouter {

struct HttpServerOptions {
  std::string address;  // host:port; port 0 picks a free one.
  int threads = 2;
  int max_connections = 1024;                       // One more is answered with 503 and closed.
  uint32_t max_header_bytes = 32 << 10;             // More is a 431.
  uint64_t max_body_bytes = 4 << 20;                // More is a 413, noticed before it is read.
  uint64_t max_body_budget_bytes = 256 << 20;       // Of all bodies being read; more is a 503.
  absl::Duration idle_timeout = absl::Seconds(75);  // Between requests, and for a request's head.
  absl::Duration body_timeout = absl::Seconds(60);  // For a whole body.
  absl::Duration write_timeout =
      absl::Seconds(60);  // A client that reads nothing for this long is dropped.
  absl::Duration ping_interval = absl::Seconds(15);      // Silence in a stream before a keep-alive.
  std::function<void(int)> on_connections = [](int) {};  // Called with the number of open ones.
};

class HttpServer {
 public:
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options,
                                                           HttpHandler* handler);
  ~HttpServer();

  int port() const;
  // Runs `closure` on the server's threads. Dropped after Stop.
  void Post(std::function<void()> closure);
  // Refuses new connections, closes idle ones, and ends each connection after its current reply.
  void Drain();
  // Bytes of the bodies that are being read or parsed.
  size_t body_bytes() const;
  // Calls that have not ended.
  int active_calls() const;
  // Drops every connection and joins. Idempotent.
  void Stop();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenrouter
