#include "services/gateway/http/http_connection.h"

#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "services/gateway/errors/api_error.h"
#include "services/gateway/errors/exception_guard.h"

namespace tokenrouter {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;
using beast::error_code;

namespace {

constexpr size_t kReadAheadBytes = 64 << 10;
constexpr size_t kReadPieceBytes = 4 << 10;
// Limits of what a refused client may still send before the connection is closed.
constexpr absl::Duration kLingerTime = absl::Seconds(2);
constexpr size_t kLingerBytes = size_t{256} << 20;

std::chrono::nanoseconds Chrono(absl::Duration duration) {
  return absl::ToChronoNanoseconds(duration);
}

HttpRequest ToRequest(http::request<http::string_body>&& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  request.path = std::string(target.substr(0, target.find('?')));
  for (const auto& field : message) {
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

template <typename Message>
void SetHead(const HttpStep& step, bool keep_alive, unsigned version, Message* message) {
  message->version(version);
  message->result(static_cast<unsigned>(step.status));
  for (const auto& [name, value] : step.headers) message->set(name, value);
  message->keep_alive(keep_alive);
}

}  // namespace

HttpConnection::HttpConnection(tcp::socket socket, std::shared_ptr<HttpShared> shared)
    : shared_(std::move(shared)),
      stream_(std::move(socket)),
      buffer_(shared_->options.max_header_bytes + kReadAheadBytes),
      signal_(stream_.get_executor()) {}

HttpConnection::~HttpConnection() { HoldBodyBytes(0); }

bool HttpConnection::HoldBodyBytes(uint64_t bytes) {
  const uint64_t added = bytes - held_body_bytes_;  // Unsigned: may wrap, as the sums below do.
  const uint64_t total = shared_->body_bytes.fetch_add(added) + added;
  held_body_bytes_ = bytes;
  return bytes == 0 || total <= shared_->options.max_body_budget_bytes;
}

asio::awaitable<void> HttpConnection::Run() {
  const auto self = shared_from_this();
  error_code ignored;
  stream_.socket().set_option(tcp::no_delay(true), ignored);
  while (!shared_->draining) {
    Parser parser;
    if (!co_await ReadRequest(&parser)) co_return;
    const bool keep_alive = parser.get().keep_alive();
    const unsigned version = parser.get().version();
    in_call_ = true;
    const bool goes_on = co_await Serve(ToRequest(parser.release()), keep_alive, version);
    in_call_ = false;
    if (!goes_on) break;
  }
  stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
}

asio::awaitable<void> HttpConnection::RunRefusal(absl::Status status) {
  const auto self = shared_from_this();
  co_await Refuse(std::move(status));
}

asio::awaitable<bool> HttpConnection::ReadRequest(Parser* parser) {
  const HttpServerOptions& options = shared_->options;
  parser->header_limit(options.max_header_bytes);
  parser->body_limit(options.max_body_bytes);
  error_code error;
  stream_.expires_after(Chrono(options.idle_timeout));
  co_await http::async_read_header(stream_, buffer_, *parser, redirect_error(use_awaitable, error));
  if (!error && beast::iequals(parser->get()[http::field::expect], "100-continue")) {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    co_await asio::async_write(stream_, asio::buffer(kContinue),
                               redirect_error(use_awaitable, error));
  }
  if (!error) {
    stream_.expires_after(Chrono(options.body_timeout));
    co_await ReadBody(parser, &error);
  }
  if (!error) co_return true;
  co_await RefuseBadRequest(error);
  co_return false;
}

asio::awaitable<void> HttpConnection::ReadBody(Parser* parser, error_code* error) {
  parser->eager(true);
  while (!*error && !parser->is_done()) {
    co_await http::async_read_some(stream_, buffer_, *parser,
                                   redirect_error(use_awaitable, *error));
    // Counts received and not announced bytes, since an announcement costs a client nothing.
    if (HoldBodyBytes(parser->get().body().size()) || *error) continue;
    *error = asio::error::no_memory;
    parser->get().body() = std::string();
    HoldBodyBytes(0);
  }
}

asio::awaitable<void> HttpConnection::RefuseBadRequest(error_code error) {
  const HttpServerOptions& options = shared_->options;
  if (error == http::error::body_limit) {
    co_await Refuse(WithHttpStatus(
        WithCode(absl::InvalidArgumentError(absl::StrCat(
                     "the body is too large; allowed: ", options.max_body_bytes, " bytes")),
                 "body_too_large"),
        413));
  } else if (error == asio::error::no_memory) {
    absl::Status status = absl::UnavailableError(
        absl::StrCat("the bodies being read have reached ", options.max_body_budget_bytes,
                     " bytes, the most allowed at once; try again"));
    status = WithCode(std::move(status), "body_budget_exhausted");
    co_await Refuse(WithRetryAfter(std::move(status), absl::Seconds(1)));
  } else if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    co_await Refuse(WithHttpStatus(
        absl::InvalidArgumentError(absl::StrCat(
            "the request head is too large; allowed: ", options.max_header_bytes, " bytes")),
        431));
  } else if (error != http::error::end_of_stream && error != http::error::partial_message &&
             error.category() == http::make_error_code(http::error::bad_method).category()) {
    co_await Refuse(absl::InvalidArgumentError(
        absl::StrCat("the request is not valid HTTP: ", error.message())));
  }
  // In every other case the client has left or gone silent, so no answer is sent.
}

asio::awaitable<void> HttpConnection::Refuse(absl::Status status) {
  HttpStep step = shared_->handler->Refuse(status);
  if (co_await WriteReply(std::move(step), /*keep_alive=*/false, /*version=*/11)) {
    co_await LingerAndClose();
  }
}

asio::awaitable<void> HttpConnection::LingerAndClose() {
  error_code error;
  stream_.socket().shutdown(tcp::socket::shutdown_send, error);
  stream_.expires_after(Chrono(kLingerTime));
  std::array<char, 16 << 10> scratch;
  for (size_t total = 0; !error && total < kLingerBytes;) {
    total += co_await stream_.async_read_some(asio::buffer(scratch),
                                              redirect_error(use_awaitable, error));
  }
  stream_.socket().close(error);
}

asio::awaitable<bool> HttpConnection::Serve(HttpRequest request, bool keep_alive,
                                            unsigned version) {
  woken_ = false;
  head_only_ = request.method == "HEAD";
  if (head_only_) request.method = "GET";
  std::unique_ptr<HttpCall> call = StartCall(std::move(request));
  HoldBodyBytes(0);
  bool goes_on = false;
  {
    ++shared_->active_calls;
    const absl::Cleanup ended = [this] { --shared_->active_calls; };
    StartWatch();
    goes_on = co_await RunCall(call.get(), keep_alive, version);
    call.reset();
  }
  co_await StopWatch();
  co_return goes_on&& keep_alive && !gone_;
}

std::unique_ptr<HttpCall> HttpConnection::StartCall(HttpRequest request) {
  std::unique_ptr<HttpCall> call;
  const absl::Status status = CatchExceptions([&] {
    call = shared_->handler->Start(std::move(request), [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self) asio::post(self->stream_.get_executor(), [self] { self->Wake(); });
    });
  });
  if (status.ok()) return call;
  return std::make_unique<ReadyHttpCall>(shared_->handler->Refuse(status));
}

HttpStep HttpConnection::NextStep(HttpCall* call, bool streaming) {
  HttpStep step;
  const absl::Status status = CatchExceptions([&] { step = call->Next(); });
  if (status.ok()) return step;
  if (!streaming) return shared_->handler->Refuse(status);
  gone_ = true;  // A stream that has begun can only be cut.
  return HttpStep();
}

asio::awaitable<bool> HttpConnection::RunCall(HttpCall* call, bool keep_alive, unsigned version) {
  bool streaming = false;
  while (!gone_) {
    keep_alive = keep_alive && !shared_->draining;
    HttpStep step = NextStep(call, streaming);
    const bool closes = step.close;
    bool written = true;
    switch (step.kind) {
      case HttpStep::Kind::kWait: {
        const absl::Duration limit =
            streaming ? shared_->options.ping_interval : absl::ZeroDuration();
        if (!co_await WaitForWake(limit)) written = co_await WriteStreamData(call->KeepAlive());
        if (!written) co_return false;
        continue;
      }
      case HttpStep::Kind::kReply:
        written = co_await WriteReply(std::move(step), keep_alive && !closes, version);
        co_return written&& keep_alive && !closes;
      case HttpStep::Kind::kStreamHead:
        written = co_await WriteStreamHead(std::move(step), keep_alive, version);
        streaming = true;
        break;
      case HttpStep::Kind::kStreamData:
        written = co_await WriteStreamData(step.bytes);
        break;
      case HttpStep::Kind::kStreamEnd:
        written = co_await WriteStreamEnd();
        co_return written&& keep_alive && !closes && chunked_;
    }
    if (!written) co_return false;
    call->OnWritten();
  }
  co_return false;
}

asio::awaitable<bool> HttpConnection::WriteReply(HttpStep step, bool keep_alive, unsigned version) {
  http::response<http::string_body> response;
  SetHead(step, keep_alive, version, &response);
  response.body() = std::move(step.bytes);
  response.prepare_payload();
  error_code error;
  stream_.expires_after(Chrono(shared_->options.write_timeout));
  http::response_serializer<http::string_body> serializer(response);
  if (head_only_) {
    co_await http::async_write_header(stream_, serializer, redirect_error(use_awaitable, error));
  } else {
    co_await http::async_write(stream_, serializer, redirect_error(use_awaitable, error));
  }
  co_return !error;
}

asio::awaitable<bool> HttpConnection::WriteStreamHead(HttpStep step, bool keep_alive,
                                                      unsigned version) {
  chunked_ = version >= 11;
  http::response<http::empty_body> response;
  SetHead(step, keep_alive && chunked_, version, &response);
  response.chunked(chunked_);
  http::response_serializer<http::empty_body> serializer(response);
  error_code error;
  stream_.expires_after(Chrono(shared_->options.write_timeout));
  co_await http::async_write_header(stream_, serializer, redirect_error(use_awaitable, error));
  co_return !error;
}

asio::awaitable<bool> HttpConnection::WriteStreamData(std::string_view bytes) {
  if (bytes.empty()) co_return true;
  error_code error;
  stream_.expires_after(Chrono(shared_->options.write_timeout));
  const asio::const_buffer data(bytes.data(), bytes.size());
  if (chunked_) {
    co_await asio::async_write(stream_, http::make_chunk(data),
                               redirect_error(use_awaitable, error));
  } else {
    co_await asio::async_write(stream_, data, redirect_error(use_awaitable, error));
  }
  co_return !error;
}

asio::awaitable<bool> HttpConnection::WriteStreamEnd() {
  if (!chunked_) co_return true;
  error_code error;
  stream_.expires_after(Chrono(shared_->options.write_timeout));
  co_await asio::async_write(stream_, http::make_chunk_last(),
                             redirect_error(use_awaitable, error));
  co_return !error;
}

asio::awaitable<bool> HttpConnection::WaitForWake(absl::Duration limit) {
  if (!woken_ && !gone_) {
    if (limit > absl::ZeroDuration()) {
      signal_.expires_after(Chrono(limit));
    } else {
      signal_.expires_at(std::chrono::steady_clock::time_point::max());
    }
    error_code error;
    co_await signal_.async_wait(redirect_error(use_awaitable, error));
  }
  co_return std::exchange(woken_, false) || gone_;
}

void HttpConnection::Wake() {
  woken_ = true;
  signal_.cancel();
}

void HttpConnection::StartWatch() {
  if (buffer_.size() >= kReadAheadBytes) return;
  watching_ = true;
  // Past the stream's own timeouts, which are about writes while a call runs.
  stream_.socket().async_read_some(
      buffer_.prepare(kReadPieceBytes),
      asio::bind_cancellation_slot(stop_watch_.slot(),
                                   [self = shared_from_this()](error_code error, size_t bytes) {
                                     self->watching_ = false;
                                     self->buffer_.commit(bytes);
                                     if (error && error != asio::error::operation_aborted)
                                       self->gone_ = true;
                                     if (!error && !self->stopping_watch_)
                                       return self->StartWatch();
                                     self->Wake();
                                   }));
}

asio::awaitable<void> HttpConnection::StopWatch() {
  stopping_watch_ = true;
  if (watching_) stop_watch_.emit(asio::cancellation_type::all);
  while (watching_) {
    woken_ = false;
    signal_.expires_at(std::chrono::steady_clock::time_point::max());
    error_code error;
    co_await signal_.async_wait(redirect_error(use_awaitable, error));
  }
  stopping_watch_ = false;
}

void HttpConnection::Close() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    error_code ignored;
    self->gone_ = true;
    self->stream_.socket().close(ignored);
    self->Wake();
  });
}

void HttpConnection::CloseIfIdle() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    error_code ignored;
    if (!self->in_call_) self->stream_.socket().close(ignored);
  });
}

}  // namespace tokenrouter
