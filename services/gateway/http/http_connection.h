// One HTTP connection, from its first byte to its close, as a coroutine on its own strand. For
// http_server.cc alone: the only other file that sees Beast. Ownership: Run keeps the connection
// alive; others hold it weakly. Threads: everything on the strand except Close and CloseIfIdle,
// which post to it.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>

#include "services/gateway/http/http_server.h"

namespace tokenrouter {

// The state that the connections of one server share.
struct HttpShared {
  HttpServerOptions options;
  HttpHandler* handler = nullptr;
  std::atomic<bool> draining{false};
  std::atomic<int> active_calls{0};
  std::atomic<uint64_t> body_bytes{0};
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // REQUIRES: the socket's executor is a strand.
  HttpConnection(boost::asio::ip::tcp::socket socket, std::shared_ptr<HttpShared> shared);
  ~HttpConnection();

  boost::asio::awaitable<void> Run();
  // Answers with the handler's refusal and closes: there are too many connections.
  boost::asio::awaitable<void> RunRefusal(absl::Status status);
  void Close();
  void CloseIfIdle();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  template <typename T = void>
  using Task = boost::asio::awaitable<T>;

  // Reads one request. False: the connection is over (a refusal has been sent where one is due).
  Task<bool> ReadRequest(Parser* parser);
  // Reads the body within the budget of all; `error` is no_memory when that is used up.
  Task<> ReadBody(Parser* parser, boost::beast::error_code* error);
  Task<> RefuseBadRequest(boost::beast::error_code error);
  Task<> Refuse(absl::Status status);
  // Runs one call to its end. False: the connection is over.
  Task<bool> Serve(HttpRequest request, bool keep_alive, unsigned version);
  // These two turn an exception into a refusal with INTERNAL.
  std::unique_ptr<HttpCall> StartCall(HttpRequest request);
  HttpStep NextStep(HttpCall* call, bool streaming);
  Task<bool> RunCall(HttpCall* call, bool keep_alive, unsigned version);
  Task<bool> WriteReply(HttpStep step, bool keep_alive, unsigned version);
  Task<bool> WriteStreamHead(HttpStep step, bool keep_alive, unsigned version);
  Task<bool> WriteStreamData(std::string_view bytes);
  Task<bool> WriteStreamEnd();
  // Waits until a wake or until the client leaves; false when `limit` passed first (zero: no
  // limit).
  Task<bool> WaitForWake(absl::Duration limit);
  // Lets the client read the last reply although it is still sending.
  Task<> LingerAndClose();

  // While a call runs, bytes are read before they are due, so that a close is noticed at once.
  void StartWatch();
  Task<> StopWatch();
  void Wake();

  const std::shared_ptr<HttpShared> shared_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  boost::asio::steady_timer signal_;
  boost::asio::cancellation_signal stop_watch_;
  // Sets this connection's share of the budget for bodies; false when less than that is left.
  bool HoldBodyBytes(uint64_t bytes);

  uint64_t held_body_bytes_ = 0;
  bool woken_ = false;
  bool watching_ = false;
  bool stopping_watch_ = false;
  bool gone_ = false;  // The client has closed, or a write failed.
  bool in_call_ = false;
  bool head_only_ = false;  // The request is a HEAD: its reply has no body.
  bool chunked_ = false;    // Of the stream being written; false for HTTP/1.0.
};

}  // namespace tokenrouter
