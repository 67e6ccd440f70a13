#include "services/gateway/http/http_server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libs/concurrency/mutex.h"
#include "libs/status/status_macros.h"
#include "libs/telemetry/log.h"
#include "services/gateway/errors/api_error.h"
#include "services/gateway/errors/exception_guard.h"
#include "services/gateway/http/http_connection.h"

namespace tokenrouter {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// After a failed accept (out of file descriptors) the next try waits, so that it does not spin.
constexpr auto kAcceptRetry = std::chrono::milliseconds(50);

absl::StatusOr<tcp::endpoint> ParseAddress(asio::io_context* io, const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("the address \"", address, "\" is not host:port with a port of 0 to 65535"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  tcp::resolver resolver(*io);
  error_code error;
  const auto results = resolver.resolve(host, std::to_string(port), error);
  if (error || results.empty()) {
    return absl::UnavailableError(
        absl::StrCat("cannot resolve the address ", address, ": ", error.message()));
  }
  return results.begin()->endpoint();
}

absl::Status Listen(const tcp::endpoint& endpoint, const std::string& address,
                    tcp::acceptor* acceptor) {
  error_code error;
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", error.message()));
}

}  // namespace

struct HttpServer::Impl {
  explicit Impl(HttpServerOptions options, HttpHandler* handler)
      : io(options.threads), acceptor(asio::make_strand(io)) {
    shared->options = std::move(options);
    shared->handler = handler;
  }

  asio::awaitable<void> Accept();
  void Run(tcp::socket socket);
  void Forget(HttpConnection* connection);
  std::vector<std::shared_ptr<HttpConnection>> Connections();

  asio::io_context io;
  tcp::acceptor acceptor;
  const std::shared_ptr<HttpShared> shared = std::make_shared<HttpShared>();
  int port = 0;
  std::vector<std::thread> threads;
  bool stopped = false;

  Mutex mutex;
  std::map<HttpConnection*, std::weak_ptr<HttpConnection>> connections ABSL_GUARDED_BY(mutex);
};

asio::awaitable<void> HttpServer::Impl::Accept() {
  while (acceptor.is_open()) {
    error_code error;
    tcp::socket socket = co_await acceptor.async_accept(
        asio::make_strand(io), asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      Run(std::move(socket));
    } else if (acceptor.is_open()) {
      LogWarning("accept_failed", {{"error", error.message()}});
      asio::steady_timer retry(acceptor.get_executor(), kAcceptRetry);
      co_await retry.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

void HttpServer::Impl::Run(tcp::socket socket) {
  const auto executor = socket.get_executor();
  const auto connection = std::make_shared<HttpConnection>(std::move(socket), shared);
  size_t open = 0;
  {
    MutexLock lock(&mutex);
    open = connections.size();
    if (open < static_cast<size_t>(shared->options.max_connections)) {
      connections.emplace(connection.get(), connection);
    }
  }
  if (open >= static_cast<size_t>(shared->options.max_connections)) {
    absl::Status status = absl::UnavailableError(absl::StrCat(
        "there are ", open, " connections; allowed: ", shared->options.max_connections));
    status = WithRetryAfter(WithCode(std::move(status), "too_many_connections"), absl::Seconds(1));
    asio::co_spawn(executor, connection->RunRefusal(std::move(status)), asio::detached);
    return;
  }
  shared->options.on_connections(static_cast<int>(open) + 1);
  asio::co_spawn(executor, connection->Run(), [this, connection](std::exception_ptr exception) {
    if (exception != nullptr) connection->Close();
    Forget(connection.get());
  });
}

void HttpServer::Impl::Forget(HttpConnection* connection) {
  MutexLock lock(&mutex);
  connections.erase(connection);
  shared->options.on_connections(static_cast<int>(connections.size()));
}

std::vector<std::shared_ptr<HttpConnection>> HttpServer::Impl::Connections() {
  std::vector<std::shared_ptr<HttpConnection>> all;
  MutexLock lock(&mutex);
  for (const auto& [pointer, weak] : connections) {
    if (auto connection = weak.lock()) all.push_back(std::move(connection));
  }
  return all;
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options,
                                                              HttpHandler* handler) {
  const std::string address = options.address;
  auto impl = std::make_unique<Impl>(std::move(options), handler);
  TR_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, ParseAddress(&impl->io, address));
  TR_RETURN_IF_ERROR(Listen(endpoint, address, &impl->acceptor));
  impl->port = impl->acceptor.local_endpoint().port();
  Impl* raw = impl.get();
  asio::co_spawn(impl->acceptor.get_executor(), impl->Accept(), asio::detached);
  for (int i = 0; i < impl->shared->options.threads; ++i) {
    // run() throws what a closure threw, and may be called again.
    impl->threads.emplace_back([raw] {
      while (!CatchExceptions([raw] { raw->io.run(); }).ok()) {
      }
    });
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { Stop(); }

int HttpServer::port() const { return impl_->port; }
size_t HttpServer::body_bytes() const { return impl_->shared->body_bytes; }
int HttpServer::active_calls() const { return impl_->shared->active_calls; }

void HttpServer::Post(std::function<void()> closure) { asio::post(impl_->io, std::move(closure)); }

void HttpServer::Drain() {
  impl_->shared->draining = true;
  asio::post(impl_->acceptor.get_executor(), [impl = impl_.get()] {
    error_code ignored;
    impl->acceptor.close(ignored);
  });
  for (const auto& connection : impl_->Connections()) connection->CloseIfIdle();
}

void HttpServer::Stop() {
  if (std::exchange(impl_->stopped, true)) return;
  Drain();
  for (const auto& connection : impl_->Connections()) connection->Close();
  // The threads end when the last connection has.
  for (std::thread& thread : impl_->threads) thread.join();
}

}  // namespace tokenrouter
