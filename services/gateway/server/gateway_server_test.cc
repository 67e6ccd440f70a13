// Tests the whole gateway in process, over real sockets, against a scripted scheduler.
#include "services/gateway/server/gateway_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libs/status/status_matchers.h"
#include "libs/telemetry/metrics.h"
#include "libs/timing/real_clock.h"
#include "services/gateway/testing/fake_scheduler.h"
#include "services/gateway/testing/fake_text_model.h"
#include "services/gateway/testing/raw_client.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Requests = std::map<uint64_t, FakeScheduler::Request>;

class GatewayServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    scheduler_.Start();
    options_.http = options_.grpc = options_.admin = "127.0.0.1:0";
    options_.scheduler = absl::StrCat("127.0.0.1:", scheduler_.port());
  }
  void StartGateway() {
    auto server =
        GatewayServer::Start(options_, std::make_unique<FakeTextModel>(), &RealClock::Get());
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    WaitForHealth(200);
  }
  void WaitForHealth(int code) {
    const std::string wanted = absl::StrCat("HTTP/1.1 ", code);
    for (int i = 0; i < 10000; ++i) {
      RawClient client(server_->http_port());
      client.Send("GET /health HTTP/1.1\r\nHost: test\r\n\r\n");
      if (client.ReadResponse().rfind(wanted, 0) == 0) return;
    }
    FAIL() << "/health never returned " << code;
  }
  static std::string Chat(int max_tokens, const std::string& fields = "") {
    return PostRequest(
        "/v1/chat/completions",
        absl::StrCat(R"({"model":"tokenrouter","max_tokens":)", max_tokens,
                     R"(,"messages":[{"role":"user","content":"hi"}])", fields, "}"));
  }
  static std::string StreamedText(const std::string& response) {
    std::string text;
    for (const absl::string_view event : absl::StrSplit(Unchunk(BodyOf(response)), "\n\n")) {
      if (event.substr(0, 7) != "data: {") continue;
      const json::value value = json::parse(std::string(event.substr(6)));
      if (!value.as_object().contains("choices")) continue;
      const json::object& delta = value.at("choices").at(0).at("delta").as_object();
      if (delta.contains("content")) text += std::string(delta.at("content").as_string());
    }
    return text;
  }

  FakeScheduler scheduler_;
  GatewayOptions options_;
  std::unique_ptr<GatewayServer> server_;
};

TEST_F(GatewayServerTest, StreamAndWholeReplyShowTheSameTextOnOneConnection) {
  StartGateway();
  RawClient client(server_->http_port());
  client.Send(Chat(200));
  const std::string whole = client.ReadResponse();
  ASSERT_THAT(whole, StartsWith("HTTP/1.1 200 OK"));
  const json::value body = json::parse(BodyOf(whole));
  EXPECT_EQ(body.at("choices").at(0).at("message").at("content").as_string(),
            FakeScheduler::Text(200));
  EXPECT_EQ(body.at("usage").at("routing").at("large_tokens"), 20);
  client.Send(Chat(200, R"(,"stream":true)"));
  const std::string stream = client.ReadResponse();
  EXPECT_THAT(stream, HasSubstr("data: [DONE]"));
  EXPECT_EQ(StreamedText(stream), FakeScheduler::Text(200));
}

TEST_F(GatewayServerTest, AnswersPipelinedRequestsInOrder) {
  StartGateway();
  RawClient client(server_->http_port());
  client.Send(Chat(3) + Chat(5, R"(,"stream":true)") + "GET /version HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_THAT(client.ReadResponse(), HasSubstr("\"abc\""));
  EXPECT_EQ(StreamedText(client.ReadResponse()), "abcde");
  EXPECT_THAT(client.ReadResponse(), HasSubstr("version"));
}

TEST_F(GatewayServerTest, CancelsWhenAClientLeavesWhileItWaits) {
  StartGateway();
  scheduler_.Hold();
  for (const char* fields : {"", R"(,"stream":true)"}) {
    RawClient client(server_->http_port());
    client.Send(Chat(10, fields));
    const auto last_is = [](bool cancelled) {
      return [cancelled](const Requests& requests) {
        return !requests.empty() && requests.rbegin()->second.cancelled == cancelled;
      };
    };
    ASSERT_TRUE(scheduler_.WaitFor(last_is(false)));
    client.Close();
    EXPECT_TRUE(scheduler_.WaitFor(last_is(true)));
  }
}

TEST_F(GatewayServerTest, CancelsWhenAClientLeavesInItsStream) {
  StartGateway();
  RawClient client(server_->http_port(), 4096);
  client.Send(Chat(1000000, R"(,"stream":true)"));
  client.ReadThrough("data: ");
  client.Close();
  EXPECT_TRUE(scheduler_.WaitFor([](const Requests& requests) {
    return !requests.empty() && requests.begin()->second.cancelled;
  }));
}

TEST_F(GatewayServerTest, ASlowReaderStopsItsOwnRequestAndLosesNothing) {
  StartGateway();
  constexpr int kTokens = 30000;
  RawClient client(server_->http_port(), 4096);
  client.Send(Chat(kTokens, R"(,"stream":true)"));
  // Another client is served meanwhile, and the slow one's tokens stay within its credit.
  RawClient quick(server_->http_port());
  quick.Send(Chat(50));
  EXPECT_THAT(quick.ReadResponse(), HasSubstr(FakeScheduler::Text(50)));
  EXPECT_EQ(StreamedText(client.ReadResponse()), FakeScheduler::Text(kTokens));
  EXPECT_TRUE(scheduler_.WaitFor([](const Requests& requests) {
    return requests.begin()->second.furthest_ahead <= FakeScheduler::kCredit;
  }));
}

TEST_F(GatewayServerTest, DropsAClientThatNeverReads) {
  options_.write_timeout = absl::Milliseconds(200);
  StartGateway();
  RawClient client(server_->http_port(), 4096);
  client.Send(Chat(1000000, R"(,"stream":true)"));
  EXPECT_TRUE(scheduler_.WaitFor([](const Requests& requests) {
    return !requests.empty() && requests.begin()->second.cancelled;
  }));
}

TEST_F(GatewayServerTest, StreamsGoOnAcrossARestartOfTheScheduler) {
  StartGateway();
  scheduler_.Hold();
  RawClient client(server_->http_port());
  client.Send(Chat(100, R"(,"stream":true)"));
  ASSERT_TRUE(scheduler_.WaitFor([](const Requests& requests) { return !requests.empty(); }));
  const int port = scheduler_.port();
  scheduler_.Stop();
  FakeScheduler next;
  next.Start(port, /*term=*/2000);
  EXPECT_EQ(StreamedText(client.ReadResponse()), FakeScheduler::Text(100));
  EXPECT_TRUE(next.WaitFor([](const Requests& requests) {
    return requests.size() == 1 && requests.begin()->second.submit.resumed();
  }));
}

TEST_F(GatewayServerTest, RefusalsOfTheSchedulerAreStatusCodes) {
  StartGateway();
  wire::Rejection rejection;
  rejection.set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
  rejection.set_message("the queue is full");
  rejection.set_reason("queue_full");
  rejection.set_retry_after_ms(1000);
  scheduler_.Reject(rejection);
  RawClient client(server_->http_port());
  client.Send(Chat(5, R"(,"stream":true)"));
  const std::string response = client.ReadResponse();
  EXPECT_THAT(response, StartsWith("HTTP/1.1 429"));
  EXPECT_THAT(response, HasSubstr("Retry-After: 1"));
  EXPECT_THAT(response, HasSubstr("queue_full"));
}

TEST_F(GatewayServerTest, AStopStringEndsTheRequestAtTheScheduler) {
  StartGateway();
  RawClient client(server_->http_port());
  client.Send(Chat(100, R"(,"stop":["klm"])"));
  const std::string response = client.ReadResponse();
  EXPECT_THAT(response, HasSubstr("\"abcdefghij\""));
  EXPECT_TRUE(scheduler_.WaitFor([](const Requests& requests) {
    const FakeScheduler::Request& request = requests.begin()->second;
    return request.gateway_finish &&
           request.gateway_finish->position() == request.submit.spec().prompt_length() + 13;
  }));
}

TEST_F(GatewayServerTest, HealthFollowsTheWorkers) {
  StartGateway();
  scheduler_.SetPair(0, 1000);
  WaitForHealth(503);
  scheduler_.SetPair(1, 1000);
  WaitForHealth(200);
}

TEST_F(GatewayServerTest, ASchedulerThatDoesNotAnswerIsNamedWhileNotReady) {
  options_.scheduler = "127.0.0.1:1";  // Refused at once, with or without a network.
  auto server =
      GatewayServer::Start(options_, std::make_unique<FakeTextModel>(), &RealClock::Get());
  ASSERT_THAT(server, IsOk());
  // At once, and when the first try has failed.
  for (const char* why : {"HTTP/1.1 503", "does not answer"}) {
    std::string answer;
    for (int i = 0; i < 10000 && answer.find(why) == std::string::npos; ++i) {
      RawClient client((*server)->admin_port());
      client.Send("GET /readyz HTTP/1.1\r\nHost: test\r\n\r\n");
      answer = client.ReadResponse();
      ASSERT_THAT(answer, HasSubstr("the scheduler at 127.0.0.1:1 (--scheduler)"));
    }
    EXPECT_THAT(answer, HasSubstr(why));
  }
}

TEST_F(GatewayServerTest, AStreamThatIsSilentIsPinged) {
  options_.ping_interval = absl::Milliseconds(30);
  StartGateway();
  scheduler_.Hold(/*tokens=*/10);
  RawClient client(server_->http_port());
  client.Send(Chat(100, R"(,"stream":true)"));
  EXPECT_THAT(client.ReadThrough(": ping"), HasSubstr("data: "));
  scheduler_.Release();
  EXPECT_THAT(client.ReadThrough("0\r\n\r\n"), HasSubstr("[DONE]"));
}

TEST_F(GatewayServerTest, DrainLetsRunningRequestsEndAndRefusesNewOnes) {
  StartGateway();
  scheduler_.Hold();
  RawClient running(server_->http_port());
  running.Send(Chat(20));
  RawClient idle(server_->http_port());
  ASSERT_TRUE(scheduler_.WaitFor([](const Requests& requests) { return !requests.empty(); }));
  std::thread drain([this] { server_->Drain(); });
  EXPECT_EQ(idle.ReadToEnd(), "") << "an idle connection is closed";
  scheduler_.Release();
  const std::string response = running.ReadToEnd();
  EXPECT_THAT(response, HasSubstr(FakeScheduler::Text(20)));
  EXPECT_THAT(response, HasSubstr("Connection: close"));
  drain.join();
}

}  // namespace
}  // namespace tokenrouter
