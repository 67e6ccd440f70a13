#include "libs/telemetry/admin_server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libs/telemetry/metrics.h"

namespace tokenrouter {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

namespace {

constexpr auto kIdleTimeout = std::chrono::seconds(15);
constexpr std::uint64_t kBodyLimitBytes = 1024;
// After a failed accept (out of file descriptors) the next try waits, so that it does not spin.
constexpr auto kAcceptRetry = std::chrono::milliseconds(50);

using Response = http::response<http::string_body>;

void AnswerPage(const absl::StatusOr<std::string>& page, Response* response) {
  if (page.ok()) {
    response->set(http::field::content_type, "application/json");
    response->body() = absl::StrCat(*page, "\n");
  } else {
    response->result(http::status::service_unavailable);
    response->body() = absl::StrCat(page.status().message(), "\n");
  }
}

std::string KnownPaths(const AdminServer::Options& options) {
  std::string known = "known: /metrics /livez /readyz";
  for (const auto& [path, page] : options.pages) absl::StrAppend(&known, " ", path);
  return known + "\n";
}

void AnswerProbe(const absl::Status& status, Response* response) {
  if (!status.ok()) response->result(http::status::service_unavailable);
  response->body() = status.ok() ? "ok\n" : absl::StrCat(status.message(), "\n");
}

Response Answer(const AdminServer::Options& options,
                const http::request<http::string_body>& request) {
  Response response(http::status::ok, request.version());
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  if (request.method() != http::verb::get) {
    response.result(http::status::method_not_allowed);
    response.body() = "only GET\n";
  } else if (request.target() == "/metrics") {
    response.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    response.body() = ExposeText(*options.registry);
  } else if (request.target() == "/livez") {
    AnswerProbe(options.alive(), &response);
  } else if (request.target() == "/readyz") {
    AnswerProbe(options.ready(), &response);
  } else if (const auto page = options.pages.find(std::string(request.target()));
             page != options.pages.end()) {
    AnswerPage(page->second(), &response);
  } else {
    response.result(http::status::not_found);
    response.body() = KnownPaths(options);
  }
  response.keep_alive(request.keep_alive());
  response.prepare_payload();
  return response;
}

asio::awaitable<void> Serve(const AdminServer::Options& options, tcp::socket socket) {
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer;
  beast::error_code error;
  while (true) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(kBodyLimitBytes);
    stream.expires_after(kIdleTimeout);
    co_await http::async_read(stream, buffer, parser,
                              asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    Response response = Answer(options, parser.get());
    co_await http::async_write(stream, response, asio::redirect_error(asio::use_awaitable, error));
    if (error || !response.keep_alive()) co_return;
  }
}

asio::awaitable<void> Accept(const AdminServer::Options& options, tcp::acceptor& acceptor) {
  while (acceptor.is_open()) {
    beast::error_code error;
    tcp::socket socket =
        co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      asio::co_spawn(acceptor.get_executor(), Serve(options, std::move(socket)), asio::detached);
    } else if (acceptor.is_open()) {
      asio::steady_timer retry(acceptor.get_executor(), kAcceptRetry);
      co_await retry.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

absl::StatusOr<tcp::endpoint> ParseEndpoint(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  beast::error_code error;
  if (colon != std::string::npos && absl::SimpleAtoi(address.substr(colon + 1), &port) &&
      port >= 0 && port <= 65535) {
    const auto host =
        asio::ip::make_address(colon == 0 ? "0.0.0.0" : address.substr(0, colon), error);
    if (!error) return tcp::endpoint(host, static_cast<uint16_t>(port));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("admin address is '", address, "'; allowed: IP:PORT with port 0 to 65535"));
}

}  // namespace

struct AdminServer::Impl {
  Options options;
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  std::thread thread;
};

AdminServer::AdminServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(Options options) {
  const absl::StatusOr<tcp::endpoint> endpoint = ParseEndpoint(options.address);
  if (!endpoint.ok()) return endpoint.status();
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  beast::error_code error;
  impl->acceptor.open(endpoint->protocol(), error);
  if (!error) impl->acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) impl->acceptor.bind(*endpoint, error);
  if (!error) impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("cannot listen on admin address ",
                                               impl->options.address, ": ", error.message()));
  }
  asio::co_spawn(impl->context, Accept(impl->options, impl->acceptor), asio::detached);
  impl->thread = std::thread([context = &impl->context] { context->run(); });
  return std::unique_ptr<AdminServer>(new AdminServer(std::move(impl)));
}

AdminServer::~AdminServer() {
  impl_->context.stop();
  impl_->thread.join();
}

int AdminServer::port() const {
  beast::error_code error;
  return impl_->acceptor.local_endpoint(error).port();
}

}  // namespace tokenrouter
