// The interface between HTTP connections and handlers: a handler starts one call per request, and
// the connection pulls the steps of its reply. No socket and no Boost type appears here, so
// handlers are tested without either. Ownership: the connection owns the call and destroys it when
// the reply is complete or the client has left; a call must then cancel its work. Threads: one call
// is used by one thread at a time; `wake` may be called from any.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace tokenrouter {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // In capitals.
  std::string path;    // Without the query.
  HttpHeaders headers;
  std::string body;

  // Value of the first header of that name, in any case; empty when absent.
  std::string_view Header(std::string_view name) const;
};

struct HttpStep {
  enum class Kind {
    kWait,        // Nothing to write before the next wake.
    kReply,       // A whole reply: status, headers, bytes. The call is over.
    kStreamHead,  // Starts a stream: status and headers.
    kStreamData,  // Bytes of the stream.
    kStreamEnd,   // The stream is complete. The call is over.
  };
  Kind kind = Kind::kWait;
  int status = 200;
  HttpHeaders headers;  // Content-Type included.
  std::string bytes;
  bool close = false;  // End the connection after it.
};

class HttpCall {
 public:
  virtual ~HttpCall() = default;
  virtual HttpStep Next() = 0;
  // The bytes of the last step have been given to the socket.
  virtual void OnWritten() {}
  // Written into a stream that has been silent for a while; empty: nothing is written.
  virtual std::string_view KeepAlive() const { return {}; }
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Never null. `wake` makes the connection call Next again; it may outlive the call and is then
  // ignored.
  virtual std::unique_ptr<HttpCall> Start(HttpRequest request, std::function<void()> wake) = 0;
  // The reply to a request that never became one (too large, malformed, one connection too many).
  virtual HttpStep Refuse(const absl::Status& status) = 0;
};

// A call whose whole reply is known at once.
class ReadyHttpCall final : public HttpCall {
 public:
  explicit ReadyHttpCall(HttpStep reply) : reply_(std::move(reply)) {}
  HttpStep Next() override { return std::move(reply_); }

 private:
  HttpStep reply_;
};

}  // namespace tokenrouter
