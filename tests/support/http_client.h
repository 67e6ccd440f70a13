// A blocking HTTP client for tests: whole responses, and server-sent events one by one.
// Threads: one thread per object. Every wait is bounded by the timeout.
// Errors: UNAVAILABLE when the connection fails or ends early; DEADLINE_EXCEEDED at the timeout.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tokenrouter {

inline constexpr absl::Duration kHttpTimeout = absl::Seconds(60);

struct HttpResponse {
  int code = 0;
  std::map<std::string, std::string> headers = {};  // Names in lower case.
  std::string body = {};
};

absl::StatusOr<HttpResponse> HttpFetch(int port, const std::string& method,
                                       const std::string& target, const std::string& body = "",
                                       const std::map<std::string, std::string>& headers = {},
                                       absl::Duration timeout = kHttpTimeout);

// One streamed response. The destructor closes the connection, which is how a client goes away.
class EventStream {
 public:
  static absl::StatusOr<std::unique_ptr<EventStream>> Open(int port, const std::string& target,
                                                           const std::string& body,
                                                           absl::Duration timeout = kHttpTimeout);
  ~EventStream();

  int code() const;
  // The data of the next event; nullopt after the last one. "[DONE]" is returned like any other.
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  struct Impl;
  explicit EventStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenrouter
