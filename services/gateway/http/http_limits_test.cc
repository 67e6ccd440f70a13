// Tests how HttpServer treats bytes that are not a valid request, over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/status_matchers.h"
#include "services/gateway/http/http_server.h"
#include "services/gateway/openai/openai_call.h"
#include "services/gateway/testing/raw_client.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ThrowingCall final : public HttpCall {
 public:
  explicit ThrowingCall(bool streams) : streams_(streams) {}
  HttpStep Next() override {
    if (!std::exchange(streams_, false)) throw std::bad_alloc();
    HttpStep head;
    head.kind = HttpStep::Kind::kStreamHead;
    return head;
  }

 private:
  bool streams_;
};

// Answers with the size of the body; never touches anything else. Some paths run out of memory.
class SizeHandler final : public HttpHandler {
 public:
  std::unique_ptr<HttpCall> Start(HttpRequest request, std::function<void()> /*wake*/) override {
    if (request.path == "/throw") throw std::bad_alloc();
    if (request.path == "/throw_next") return std::make_unique<ThrowingCall>(false);
    if (request.path == "/throw_in_stream") return std::make_unique<ThrowingCall>(true);
    return std::make_unique<ReadyHttpCall>(
        JsonReply(absl::StrCat(R"({"size":)", request.body.size(), "}")));
  }
  HttpStep Refuse(const absl::Status& status) override { return ErrorReply(status); }
};

class HttpLimitsTest : public ::testing::Test {
 protected:
  void Start(HttpServerOptions options = {}) {
    options.address = "127.0.0.1:0";
    options.max_body_bytes = 1 << 20;
    auto server = HttpServer::Start(std::move(options), &handler_);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }
  void ExpectUnharmed() {
    RawClient client(server_->port());
    client.Send(PostRequest("/", "abc"));
    EXPECT_THAT(client.ReadResponse(), HasSubstr(R"({"size":3})"));
  }
  SizeHandler handler_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpLimitsTest, RefusesALargeBodyByItsAnnouncedLength) {
  Start();
  RawClient client(server_->port());
  client.Send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 104857600\r\n\r\n");
  const std::string response = client.ReadResponse();
  EXPECT_THAT(response, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(response, HasSubstr(R"("code":"body_too_large")"));
  ExpectUnharmed();
}

TEST_F(HttpLimitsTest, AClientThatSendsItAllAnywayStillReadsTheRefusal) {
  Start();
  RawClient client(server_->port());
  client.Send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 104857600\r\n\r\n");
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 100 && client.Send(piece); ++i) {
  }
  EXPECT_THAT(client.ReadResponse(), StartsWith("HTTP/1.1 413"));
  ExpectUnharmed();
}

TEST_F(HttpLimitsTest, RefusesALargeChunkedBody) {
  Start();
  RawClient client(server_->port());
  client.Send("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = absl::StrCat("10000\r\n", std::string(0x10000, 'x'), "\r\n");
  for (int i = 0; i < 17; ++i) client.Send(chunk);
  EXPECT_THAT(client.ReadResponse(), StartsWith("HTTP/1.1 413"));
}

TEST_F(HttpLimitsTest, BodiesBeingReadShareABudget) {
  Start({.max_body_budget_bytes = 300 << 10});
  const auto begin = [this](RawClient* client) {
    client->Send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 262144\r\n\r\n");
    client->Send(std::string(200 << 10, 'x'));
  };
  {
    RawClient first(server_->port());
    begin(&first);
    while (server_->body_bytes() < size_t{200} << 10) std::this_thread::yield();
    RawClient second(server_->port());
    begin(&second);
    const std::string refusal = second.ReadResponse();
    EXPECT_THAT(refusal, StartsWith("HTTP/1.1 503"));
    EXPECT_THAT(refusal, HasSubstr("Retry-After: 1"));
    EXPECT_THAT(refusal, HasSubstr(R"("code":"body_budget_exhausted")"));
    first.Send(std::string(56 << 10, 'x'));
    EXPECT_THAT(first.ReadResponse(), HasSubstr(R"({"size":262144})"));
    // The budget of the bytes read is returned when they have become a request.
    begin(&first);
    first.Send(std::string(56 << 10, 'x'));
    EXPECT_THAT(first.ReadResponse(), HasSubstr(R"({"size":262144})"));
    begin(&first);
  }
  // It is returned too when the client leaves in the middle of the body.
  while (server_->body_bytes() > 0) std::this_thread::yield();
  ExpectUnharmed();
}

TEST_F(HttpLimitsTest, AnswersExpectContinueBeforeTheBody) {
  Start();
  RawClient client(server_->port());
  client.Send("POST / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_THAT(client.ReadThrough("\r\n\r\n"), StartsWith("HTTP/1.1 100 Continue"));
  client.Send("abc");
  EXPECT_THAT(client.ReadResponse(), HasSubstr(R"({"size":3})"));
}

TEST_F(HttpLimitsTest, RefusesLargeHeadsAndNonsense) {
  Start();
  {
    RawClient client(server_->port());
    client.Send(absl::StrCat("GET / HTTP/1.1\r\nX: ", std::string(100000, 'x'), "\r\n\r\n"));
    EXPECT_THAT(client.ReadResponse(), StartsWith("HTTP/1.1 431"));
  }
  {
    RawClient client(server_->port());
    client.Send("this is not HTTP\r\n\r\n");
    EXPECT_THAT(client.ReadResponse(), StartsWith("HTTP/1.1 400"));
  }
  ExpectUnharmed();
}

TEST_F(HttpLimitsTest, AnExceptionFailsItsOwnCall) {
  Start();
  server_->Post([] { throw std::bad_alloc(); });
  for (const char* path : {"/throw", "/throw_next"}) {
    RawClient client(server_->port());
    client.Send(PostRequest(path, "abc"));
    const std::string reply = client.ReadResponse();
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 500"));
    EXPECT_THAT(reply, HasSubstr("the gateway failed"));
  }
  RawClient client(server_->port());
  client.Send(PostRequest("/throw_in_stream", "abc"));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 200"));
  while (server_->active_calls() > 0) std::this_thread::yield();
  ExpectUnharmed();
}

TEST_F(HttpLimitsTest, OneConnectionTooManyGetsA503) {
  Start({.max_connections = 1});
  RawClient first(server_->port());
  first.Send(PostRequest("/", "abc"));
  EXPECT_THAT(first.ReadResponse(), StartsWith("HTTP/1.1 200"));
  RawClient second(server_->port());
  EXPECT_THAT(second.ReadResponse(), StartsWith("HTTP/1.1 503"));
}

TEST_F(HttpLimitsTest, ClosesAConnectionThatIsIdleOrStallsInItsHead) {
  Start({.idle_timeout = absl::Milliseconds(50)});
  RawClient idle(server_->port());
  RawClient stalled(server_->port());
  stalled.Send("POST / HTT");
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_EQ(stalled.ReadToEnd(), "");
}

TEST_F(HttpLimitsTest, Http10ClientsGetOneReplyAndAClose) {
  Start();
  RawClient client(server_->port());
  client.Send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.0 200"));
}

TEST_F(HttpLimitsTest, AHeadReplyHasNoBodyAndKeepsTheConnection) {
  Start();
  RawClient client(server_->port());
  client.Send("HEAD / HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_THAT(client.ReadThrough("\r\n\r\n"), HasSubstr("Content-Length: 10"));
  client.Send(PostRequest("/", "abcd"));
  EXPECT_THAT(client.ReadResponse(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpLimitsTest, SaysWhyItCannotListen) {
  Start();
  const auto taken =
      HttpServer::Start({.address = absl::StrCat("127.0.0.1:", server_->port())}, &handler_);
  EXPECT_THAT(taken, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("in use")));
  EXPECT_THAT(HttpServer::Start({.address = "nonsense"}, &handler_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace tokenrouter
