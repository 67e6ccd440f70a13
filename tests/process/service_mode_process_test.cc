// The service mode of a request: set by the flag of the scheduler, or by the request itself.
#include <algorithm>
#include <atomic>
#include <boost/json/parse.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "libs/status/status_matchers.h"
#include "tests/process/timed_cluster.h"
#include "tests/support/chat.h"
#include "tests/support/http_client.h"
#include "tests/support/tiny_model.h"

namespace tokenrouter {
namespace {

using Routing = boost::json::object;

std::string ModeOf(const ChatAnswer& answer) {
  return std::string(answer.usage.at("routing").at("service_mode").as_string());
}

constexpr char kHeader[] = "x-tokenrouter-service-mode";

class ServiceModeProcessTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto cluster = StartTimedCluster(::testing::TempDir() + "service_mode_process", 1, 1,
                                     {"--service_mode=large_alone"});
    ASSERT_THAT(cluster, IsOk());
    cluster_ = cluster->release();
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }

  // Longer than two windows.
  static ChatAnswer Ask(Routing routing, bool stream = false) {
    ChatRequest request{.routing = std::move(routing), .max_tokens = 150, .seed = 5};
    const auto answer = stream ? ChatStreaming(cluster_->gateway().port, request)
                               : Chat(cluster_->gateway().port, request);
    EXPECT_THAT(answer, IsOk()) << cluster_->Logs();
    return answer.value_or(ChatAnswer());
  }
  static Cluster* cluster_;
};

Cluster* ServiceModeProcessTest::cluster_ = nullptr;

TEST_F(ServiceModeProcessTest, TheLargeModelAloneWritesWhatItAlwaysWrites) {
  const ChatAnswer always = Ask({{"algorithm", "always"}});
  EXPECT_EQ(ModeOf(always), "routed") << "the requested mode was not changed";
  for (const bool stream : {false, true}) {
    const ChatAnswer answer = Ask({{"algorithm", "random"}, {"p", 0.1}}, stream);
    EXPECT_EQ(answer.ids, always.ids);
    EXPECT_EQ(answer.text, always.text);
    EXPECT_EQ(answer.CountBy("large"), 150);
    EXPECT_EQ(ModeOf(answer), "large_alone");
  }
}

TEST_F(ServiceModeProcessTest, ARequestThatAsksForItIsRouted) {
  const ChatAnswer answer = Ask({{"algorithm", "random"}, {"p", 0.1}, {"service_mode", "routed"}});
  EXPECT_EQ(ModeOf(answer), "routed");
  EXPECT_GT(answer.CountBy("small"), 100);
  EXPECT_GT(answer.CountBy("large"), 0);
  EXPECT_EQ(Ask({{"algorithm", "never"}}).CountBy("small"), 150);
}

TEST_F(ServiceModeProcessTest, TheHeaderSaysIt) {
  ChatRequest request;
  for (const char* mode : {"large_alone", "routed"}) {
    request.routing = {{"service_mode", mode}};
    const auto response = HttpFetch(cluster_->gateway().port, "POST", "/v1/chat/completions",
                                    ChatBody(request, false));
    ASSERT_THAT(response, IsOk());
    EXPECT_EQ(response->headers.at(kHeader), mode);
  }
}

TEST_F(ServiceModeProcessTest, RefusesAServiceThatItDoesNotKnow) {
  ChatRequest request{.routing = {{"service_mode", "small"}}};
  const auto response =
      HttpFetch(cluster_->gateway().port, "POST", "/v1/chat/completions", ChatBody(request, false));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->code, 400);
  EXPECT_EQ(boost::json::parse(response->body).at("error").at("param"), "routing.service_mode");
}

TEST_F(ServiceModeProcessTest, CountsWhatItServed) {
  Ask({{"algorithm", "random"}, {"p", 0.1}});
  EXPECT_GT(
      Cluster::Metric(cluster_->scheduler(), "tokenrouter_scheduler_large_alone_requests_total"),
      0);
  EXPECT_GT(Cluster::Metric(cluster_->gateway(),
                            "tokenrouter_gateway_served_tokens_total{mode=\"large_alone\"}"),
            0);
}

// The small model's steps grow with their rows, the large model's hardly do: routing is twice as
// fast for one client and a third slower for twelve.
class ModeSwitchProcessTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kPatience = absl::Seconds(60);
  static constexpr int kCrowd = 12;

  void SetUp() override {
    const std::string folder = ::testing::TempDir() + "mode_switch_process";
    ASSERT_THAT(WriteTinyModel(TinySmall(Architecture::kLlama, 1), TinyFormat::kFolderF32, folder),
                IsOk());
    TR_ASSERT_OK_AND_ASSIGN(
        cluster_, Cluster::Start({.tokenizer = folder,
                                  .worker_flags = {"--engine=timed", "--tokenizer=" + folder},
                                  .small_flags = {"--timed_curve=base=2,row=1,id=0"},
                                  .large_flags = {"--timed_curve=base=8,row=0.2,id=0"}}));
  }

  // Requests of that many clients, one after the other, until one reports that it was served in
  // `mode`.
  bool ServedSo(const std::string& mode, int clients) {
    const absl::Time deadline = absl::Now() + kPatience;
    std::atomic<bool> seen{false};
    std::vector<std::thread> threads;
    for (int client = 0; client < clients; ++client) {
      threads.emplace_back([&, client] {
        for (int round = 0; !seen && absl::Now() < deadline; ++round) {
          const auto answer =
              Chat(cluster_->gateway().port, {.routing = {{"algorithm", "random"}, {"p", 0.1}},
                                              .max_tokens = 200,
                                              .seed = client * 1000 + round});
          ASSERT_THAT(answer, IsOk());
          ASSERT_EQ(answer->ids.size(), 200u) << "no token is lost in any mode";
          if (ModeOf(*answer) == mode) seen = true;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return seen;
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(ModeSwitchProcessTest, FollowsTheLoadThereAndBack) {
  EXPECT_TRUE(ServedSo("routed", 1)) << cluster_->Logs();
  EXPECT_TRUE(ServedSo("large_alone", kCrowd)) << cluster_->Logs();
  EXPECT_TRUE(ServedSo("routed", 1)) << cluster_->Logs();
  EXPECT_GE(Cluster::Metric(cluster_->scheduler(), "tokenrouter_scheduler_mode_switches_total"), 2);
}

}  // namespace
}  // namespace tokenrouter
