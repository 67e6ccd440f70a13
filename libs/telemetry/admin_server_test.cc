#include "libs/telemetry/admin_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <future>

#include "libs/concurrency/owner_loop.h"
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

TEST(AdminServerTest, ServesThePagesItIsGiven) {
  prometheus::Registry registry;
  std::atomic<bool> fine = true;
  TR_ASSERT_OK_AND_ASSIGN(
      const auto server,
      AdminServer::Start({.address = "127.0.0.1:0",
                          .registry = &registry,
                          .pages = {{"/state", [&fine]() -> absl::StatusOr<std::string> {
                                       if (fine) return "{}";
                                       return absl::UnavailableError("the loop is stuck");
                                     }}}}));
  EXPECT_THAT(
      Get(server->port(), "GET", "/state"),
      ::testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("application/json"), HasSubstr("{}")));
  fine = false;
  EXPECT_THAT(Get(server->port(), "GET", "/state"),
              ::testing::AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("the loop is stuck")));
  EXPECT_THAT(Get(server->port(), "GET", "/"), HasSubstr("/readyz /state"));
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

TEST(AdminServerTest, SaysThatTheProcessIsDeadWhileItsLoopIsBlocked) {
  std::atomic<int64_t> seconds = 0;
  OwnerLoop loop(
      {.name = "main", .now = [&] { return absl::UnixEpoch() + absl::Seconds(seconds.load()); }});
  loop.Start();
  prometheus::Registry registry;
  TR_ASSERT_OK_AND_ASSIGN(
      const auto server,
      AdminServer::Start({.address = "127.0.0.1:0", .registry = &registry, .alive = [&loop] {
                            return loop.Alive(absl::Seconds(10));
                          }}));
  EXPECT_THAT(Get(server->port(), "GET", "/livez"), StartsWith("HTTP/1.1 200"));
  std::promise<void> entered, release;
  ASSERT_TRUE(loop.Post([&] {
    entered.set_value();
    release.get_future().wait();
  }));
  entered.get_future().wait();
  seconds = 10;
  EXPECT_THAT(Get(server->port(), "GET", "/livez"), StartsWith("HTTP/1.1 200"));
  seconds = 11;
  EXPECT_THAT(Get(server->port(), "GET", "/livez"),
              ::testing::AllOf(StartsWith("HTTP/1.1 503"),
                               HasSubstr("loop main has not gone round for 11s")));
  release.set_value();
  loop.Stop();
  EXPECT_THAT(Get(server->port(), "GET", "/livez"), StartsWith("HTTP/1.1 200"))
      << "a loop that has nothing to do, or has ended, is not stuck";
}

// CPU time of the process, in milliseconds.
int64_t CpuMs() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1000000;
}

// From its construction to its end this process can open no file.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    // Not a copy of standard input, which may be closed.
    const int lowest_free = open("/dev/null", O_RDONLY);
    EXPECT_GE(lowest_free, 0);
    close(lowest_free);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest_free);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

TEST(AdminServerTest, WaitsBetweenAcceptsThatFail) {
  prometheus::Registry registry;
  TR_ASSERT_OK_AND_ASSIGN(const auto server,
                          AdminServer::Start({.address = "127.0.0.1:0", .registry = &registry}));
  // The server's first accept is over then: it takes a file for a moment even without a client.
  EXPECT_THAT(Get(server->port(), "GET", "/livez"), StartsWith("HTTP/1.1 200"));
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket socket(context);
  socket.open(boost::asio::ip::tcp::v4());
  {
    const NoMoreFiles none;
    socket.connect(
        {boost::asio::ip::make_address("127.0.0.1"), static_cast<uint16_t>(server->port())});
    boost::asio::write(socket,
                       boost::asio::buffer(std::string("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")));
    const int64_t before = CpuMs();
    pollfd reply = {.fd = socket.native_handle(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&reply, 1, /*timeout=*/400), 0) << "nothing can accept the connection";
    EXPECT_LT(CpuMs() - before, 100);
  }
  std::string head(12, ' ');
  boost::asio::read(socket, boost::asio::buffer(head));
  EXPECT_EQ(head, "HTTP/1.1 200");
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
