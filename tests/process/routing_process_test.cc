// The promises of routing, through the four real binaries on timed engines.
#include <future>

#include "absl/time/clock.h"
#include "libs/status/status_matchers.h"
#include "tests/process/timed_cluster.h"
#include "tests/support/chat.h"

namespace tokenrouter {
namespace {

using Routing = boost::json::object;

class RoutingProcessTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto cluster = StartTimedCluster(::testing::TempDir() + "routing_process");
    ASSERT_THAT(cluster, IsOk());
    cluster_ = cluster->release();
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }

  static ChatAnswer Ask(Routing routing, bool stream = false, ChatRequest request = {}) {
    request.routing = std::move(routing);
    const auto answer = stream ? ChatStreaming(cluster_->gateway().port, request)
                               : Chat(cluster_->gateway().port, request);
    EXPECT_THAT(answer, IsOk()) << cluster_->Logs();
    return answer.value_or(ChatAnswer());
  }

  static Cluster* cluster_;
};

Cluster* RoutingProcessTest::cluster_ = nullptr;

TEST_F(RoutingProcessTest, NeverAndAlwaysHaveOneAuthor) {
  const ChatAnswer never = Ask({{"algorithm", "never"}});
  EXPECT_EQ(never.CountBy("small"), 32);
  EXPECT_EQ(never.CountBy("large"), 0);
  const ChatAnswer always = Ask({{"algorithm", "always"}});
  EXPECT_EQ(always.CountBy("large"), 32);
  EXPECT_NE(never.ids, always.ids);
  EXPECT_EQ(always.finish_reason, "length");
}

TEST_F(RoutingProcessTest, EntropyZeroAndSpeculativeEqualAlways) {
  const ChatAnswer always = Ask({{"algorithm", "always"}});
  EXPECT_EQ(Ask({{"algorithm", "entropy"}, {"threshold", 0.0}}).ids, always.ids);
  for (const int window : {1, 3, 8}) {
    EXPECT_EQ(Ask({{"algorithm", "speculative"}, {"window", window}}).ids, always.ids) << window;
  }
}

TEST_F(RoutingProcessTest, SampledSpeculativeEqualsSampledAlways) {
  ChatRequest request{.temperature = 0.9, .seed = 77};
  const ChatAnswer always = Ask({{"algorithm", "always"}}, false, request);
  EXPECT_EQ(Ask({{"algorithm", "speculative"}, {"window", 4}}, false, request).ids, always.ids);
}

TEST_F(RoutingProcessTest, RandomRoutesItsShareAndRepeatsWithItsSeed) {
  int large = 0, total = 0;
  for (int seed = 1; seed <= 8; ++seed) {
    ChatRequest request{.max_tokens = 64, .seed = seed};
    const ChatAnswer first = Ask({{"algorithm", "random"}, {"p", 0.25}}, false, request);
    const ChatAnswer again = Ask({{"algorithm", "random"}, {"p", 0.25}}, true, request);
    EXPECT_EQ(first.ids, again.ids);
    EXPECT_EQ(first.authors, again.authors);
    EXPECT_EQ(first.text, again.text);
    large += first.CountBy("large");
    total += static_cast<int>(first.ids.size());
    EXPECT_EQ(first.usage.at("routing").at("large_tokens").to_number<int>(),
              first.CountBy("large"));
    EXPECT_EQ(first.usage.at("completion_tokens").to_number<int>(), 64);
  }
  // 512 draws of 0.25: mean 128, standard deviation 9.8; five of them either way.
  EXPECT_EQ(total, 512);
  EXPECT_GT(large, 128 - 49);
  EXPECT_LT(large, 128 + 49);
}

TEST_F(RoutingProcessTest, TokensDoNotDependOnTheLoad) {
  std::vector<ChatRequest> requests;
  for (int i = 0; i < 16; ++i) {
    ChatRequest request{
        .prompt = "Prompt number " + std::to_string(i), .max_tokens = 48, .seed = i};
    request.temperature = i % 2 == 0 ? 0.0 : 0.8;
    requests.push_back(request);
  }
  std::vector<std::vector<int64_t>> alone;
  for (const ChatRequest& request : requests) {
    alone.push_back(Ask({{"algorithm", "random"}, {"p", 0.3}}, false, request).ids);
  }
  std::vector<std::future<ChatAnswer>> together;
  for (const ChatRequest& request : requests) {
    together.push_back(std::async(std::launch::async, [&request] {
      return Ask({{"algorithm", "random"}, {"p", 0.3}}, true, request);
    }));
  }
  for (size_t i = 0; i < together.size(); ++i) EXPECT_EQ(together[i].get().ids, alone[i]) << i;
}

TEST_F(RoutingProcessTest, AStreamGoesOnWhileAStopStringHoldsItsTextBack) {
  const Routing never = {{"algorithm", "never"}};
  const std::string text = Ask(never, false, {.max_tokens = 200}).text;
  ASSERT_GT(text.size(), 100u);
  // Ninety-nine characters of the answer, and one that does not follow them.
  const std::string stop = text.substr(0, 99) + (text[99] == '!' ? "?" : "!");
  ChatRequest request{.max_tokens = 200, .more = {{"return_routing", false}, {"stop", stop}}};
  const absl::Time start = absl::Now();
  const ChatAnswer answer = Ask(never, true, request);
  EXPECT_EQ(answer.text, text);
  EXPECT_EQ(answer.finish_reason, "length");
  EXPECT_LT(absl::Now() - start, absl::Seconds(20)) << "a stalled request ends after 60 s";
}

TEST_F(RoutingProcessTest, LeavesNoBlockInUse) {
  Ask({{"algorithm", "random"}, {"p", 0.5}});
  const std::string used = "tokenrouter_worker_kv_blocks{state=\"used\"}";
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->small(0), used, 0));
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->large(0), used, 0));
}

}  // namespace
}  // namespace tokenrouter
