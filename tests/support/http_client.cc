#include "tests/support/http_client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

absl::Status ToStatusOf(const beast::error_code& error) {
  if (!error) return absl::OkStatus();
  if (error == beast::error::timeout) return absl::DeadlineExceededError("HTTP timeout");
  return absl::UnavailableError(error.message());
}

// A connection whose operations are started asynchronously and run to completion, which is how
// Beast applies timeouts.
struct Connection {
  explicit Connection(absl::Duration timeout) : timeout(timeout) {}

  const absl::Duration timeout;
  asio::io_context context;
  beast::tcp_stream stream{context};
  beast::flat_buffer buffer;

  template <typename Start>
  absl::Status Run(Start start) {
    beast::error_code result;
    stream.expires_after(absl::ToChronoSeconds(timeout));
    start([&result](beast::error_code error, auto&&...) { result = error; });
    context.restart();
    context.run();
    return ToStatusOf(result);
  }

  absl::Status Send(int port, http::request<http::string_body> request) {
    const asio::ip::tcp::endpoint endpoint(asio::ip::make_address("127.0.0.1"),
                                           static_cast<uint16_t>(port));
    TR_RETURN_IF_ERROR(Run([&](auto done) { stream.async_connect(endpoint, done); }));
    request.set(http::field::host, "127.0.0.1");
    request.prepare_payload();
    return Run([&](auto done) { http::async_write(stream, request, done); });
  }
};

}  // namespace

absl::StatusOr<HttpResponse> HttpFetch(int port, const std::string& method,
                                       const std::string& target, const std::string& body,
                                       const std::map<std::string, std::string>& headers,
                                       absl::Duration timeout) {
  Connection connection(timeout);
  http::request<http::string_body> request(http::string_to_verb(method), target, 11);
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  for (const auto& [name, value] : headers) request.set(name, value);
  request.body() = body;
  const absl::Status sent = connection.Send(port, std::move(request));
  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  const absl::Status read = connection.Run(
      [&](auto done) { http::async_read(connection.stream, connection.buffer, parser, done); });
  // A server may answer and close before it has taken the whole body: the answer is what counts.
  if (!read.ok()) return sent.ok() ? read : sent;
  HttpResponse response{.code = static_cast<int>(parser.get().result_int()),
                        .body = parser.get().body()};
  for (const auto& field : parser.get()) {
    response.headers[absl::AsciiStrToLower(std::string(field.name_string()))] =
        std::string(field.value());
  }
  return response;
}

struct EventStream::Impl {
  explicit Impl(absl::Duration timeout) : connection(timeout) {}

  Connection connection;
  http::response_parser<http::buffer_body> parser;
  std::string pending;  // Body bytes not yet returned as events.
};

EventStream::EventStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EventStream::~EventStream() = default;

absl::StatusOr<std::unique_ptr<EventStream>> EventStream::Open(int port, const std::string& target,
                                                               const std::string& body,
                                                               absl::Duration timeout) {
  auto impl = std::make_unique<Impl>(timeout);
  http::request<http::string_body> request(http::verb::post, target, 11);
  request.set(http::field::content_type, "application/json");
  request.body() = body;
  TR_RETURN_IF_ERROR(impl->connection.Send(port, std::move(request)));
  impl->parser.body_limit(boost::none);
  TR_RETURN_IF_ERROR(impl->connection.Run([&impl](auto done) {
    http::async_read_header(impl->connection.stream, impl->connection.buffer, impl->parser, done);
  }));
  return std::unique_ptr<EventStream>(new EventStream(std::move(impl)));
}

int EventStream::code() const { return static_cast<int>(impl_->parser.get().result_int()); }

absl::StatusOr<std::optional<std::string>> EventStream::Next() {
  while (true) {
    const size_t end = impl_->pending.find("\n\n");
    if (end != std::string::npos) {
      const std::string event = impl_->pending.substr(0, end);
      impl_->pending.erase(0, end + 2);
      if (absl::StartsWith(event, "data: ")) return event.substr(6);
      continue;  // A comment: the server's ping.
    }
    if (impl_->parser.is_done()) return std::nullopt;
    char chunk[4096];
    impl_->parser.get().body() = {.data = chunk, .size = sizeof(chunk), .more = true};
    absl::Status status = impl_->connection.Run([this](auto done) {
      http::async_read_some(impl_->connection.stream, impl_->connection.buffer, impl_->parser,
                            [done](beast::error_code error, size_t) mutable {
                              done(error == http::error::need_buffer ? beast::error_code() : error);
                            });
    });
    TR_RETURN_IF_ERROR(status);
    impl_->pending.append(chunk, sizeof(chunk) - impl_->parser.get().body().size);
  }
}

}  // namespace tokenrouter
