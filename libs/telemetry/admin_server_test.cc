#include "libs/telemetry/admin_server.h"

#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "libs/status/status_matchers.h"
#include "libs/telemetry/metrics.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Get(int port, const std::string& method, const std::string& target) {
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket socket(context);
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), static_cast<uint16_t>(port)});
  boost::asio::write(socket,
                     boost::asio::buffer(method + " " + target +
                                         " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  std::string reply;
  boost::system::error_code end;
  boost::asio::read(socket, boost::asio::dynamic_buffer(reply), end);
  return reply;
}

TEST(AdminServerTest, AnswersMetricsAndProbes) {
  prometheus::Registry registry;
  AddCounter(&registry, "steps_total", "Steps").Increment(7);
  std::atomic<bool> ready = false;
  TR_ASSERT_OK_AND_ASSIGN(
      const auto server,
      AdminServer::Start({.address = "127.0.0.1:0", .registry = &registry, .ready = [&ready] {
                            return ready ? absl::OkStatus()
                                         : absl::UnavailableError("loading model");
                          }}));
  EXPECT_THAT(Get(server->port(), "GET", "/metrics"), HasSubstr("steps_total 7"));
  EXPECT_THAT(Get(server->port(), "GET", "/livez"), StartsWith("HTTP/1.1 200"));
  const std::string loading = Get(server->port(), "GET", "/readyz");
  EXPECT_THAT(loading, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(loading, HasSubstr("loading model"));
  ready = true;
  EXPECT_THAT(Get(server->port(), "GET", "/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(server->port(), "GET", "/other"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get(server->port(), "POST", "/livez"), StartsWith("HTTP/1.1 405"));
}

TEST(AdminServerTest, NamesABadOrTakenAddress) {
  prometheus::Registry registry;
  EXPECT_THAT(AdminServer::Start({.address = "nowhere", .registry = &registry}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nowhere")));
  TR_ASSERT_OK_AND_ASSIGN(const auto server,
                          AdminServer::Start({.address = "127.0.0.1:0", .registry = &registry}));
  const std::string taken = "127.0.0.1:" + std::to_string(server->port());
  EXPECT_THAT(AdminServer::Start({.address = taken, .registry = &registry}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(taken)));
}

}  // namespace
}  // namespace tokenrouter
