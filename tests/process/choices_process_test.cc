// Requests with n > 1 through the four real binaries on timed engines, from the client's view, also
// when processes die or the client leaves.
#include <signal.h>

#include <boost/json/parse.hpp>
#include <functional>
#include <set>

#include "libs/status/status_matchers.h"
#include "tests/process/timed_cluster.h"
#include "tests/support/chat.h"
#include "tests/support/http_client.h"

namespace tokenrouter {
namespace {

constexpr int kChoices = 4;
constexpr int kMaxTested = 16;  // The most that a request may ask for.
constexpr const char* kUsedBlocks = "tokenrouter_worker_kv_blocks{state=\"used\"}";
constexpr const char* kInFlight = "tokenrouter_gateway_requests_in_flight";

using Ids = std::vector<int64_t>;

std::string Body(int choices, bool stream, int max_tokens = 200) {
  ChatRequest request{.prompt = "Count", .max_tokens = max_tokens, .temperature = 1, .seed = 5};
  request.routing = {{"algorithm", "random"}, {"p", 0.2}};
  request.more = {{"n", choices}};
  return ChatBody(request, stream);
}

void AddIds(const boost::json::value& choice, std::vector<Ids>* ids) {
  const boost::json::value* routing = choice.as_object().if_contains("routing");
  if (routing == nullptr) return;
  for (const boost::json::value& token : routing->at("tokens").as_array()) {
    ids->at(choice.at("index").to_number<size_t>()).push_back(token.at("id").to_number<int64_t>());
  }
}

class ChoicesProcessTest : public ::testing::Test {
 protected:
  void StartCluster(int small, int large) {
    auto cluster = StartTimedCluster(::testing::TempDir() + "choices_process", small, large);
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
  }
  int port() { return cluster_->gateway().port; }

  std::vector<Ids> Whole(int choices) {
    std::vector<Ids> ids(choices);
    const auto response = HttpFetch(port(), "POST", "/v1/chat/completions", Body(choices, false));
    EXPECT_THAT(response, IsOk());
    if (!response.ok() || response->code != 200) {
      ADD_FAILURE() << (response.ok() ? response->body : "") << cluster_->Logs();
      return ids;
    }
    const boost::json::value body = boost::json::parse(response->body);
    for (const auto& choice : body.at("choices").as_array()) AddIds(choice, &ids);
    return ids;
  }

  // Calls `disturb` after some events.
  std::vector<Ids> Streamed(const std::function<void()>& disturb) {
    std::vector<Ids> ids(kChoices);
    const auto stream = EventStream::Open(port(), "/v1/chat/completions", Body(kChoices, true));
    EXPECT_THAT(stream, IsOk());
    for (int events = 1; stream.ok(); ++events) {
      const auto event = (*stream)->Next();
      EXPECT_THAT(event, IsOk());
      if (!event.ok() || !event->has_value() || **event == "[DONE]") break;
      if (events == 40) disturb();
      const boost::json::value body = boost::json::parse(**event);
      EXPECT_FALSE(body.as_object().contains("error")) << **event;
      if (body.as_object().contains("error")) break;
      for (const auto& choice : body.at("choices").as_array()) AddIds(choice, &ids);
    }
    return ids;
  }

  void ExpectSameTokensDespite(const std::function<void()>& disturb) {
    const std::vector<Ids> expected = Whole(kChoices);
    const std::vector<Ids> got = Streamed(disturb);
    for (int i = 0; i < kChoices; ++i) EXPECT_EQ(got[i], expected[i]) << i << cluster_->Logs();
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(ChoicesProcessTest, AChoiceDependsOnSeedAndIndexOnly) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(1, 1));
  const std::vector<Ids> all = Whole(kMaxTested);
  EXPECT_EQ(std::set<Ids>(all.begin(), all.end()).size(), all.size());
  for (const int choices : {1, 3}) {
    const std::vector<Ids> some = Whole(choices);
    for (int i = 0; i < choices; ++i) EXPECT_EQ(some[i], all[i]) << i << " of " << choices;
  }
  ExpectSameTokensDespite([] {});
}

TEST_F(ChoicesProcessTest, AllChoicesSurviveTheKillOfASmallWorker) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(2, 1));
  // Whichever has them: one dies, and the other once a third has come.
  ExpectSameTokensDespite([this] {
    cluster_->small(0).process->Signal(SIGKILL);
    ASSERT_THAT(cluster_->AddWorker(/*large=*/false), IsOk());
    cluster_->small(1).process->Signal(SIGKILL);
  });
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->small(2), kUsedBlocks, 0));
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->large(0), kUsedBlocks, 0));
}

TEST_F(ChoicesProcessTest, AllChoicesSurviveTheRestartOfTheScheduler) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(1, 1));
  ExpectSameTokensDespite([this] { ASSERT_THAT(cluster_->RestartScheduler(), IsOk()); });
}

TEST_F(ChoicesProcessTest, AClientThatLeavesFreesAllChoices) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(1, 1));
  for (const int events : {0, 3, 40}) {
    const auto stream =
        EventStream::Open(port(), "/v1/chat/completions", Body(kMaxTested, true, 4000));
    ASSERT_THAT(stream, IsOk());
    for (int i = 0; i < events; ++i) ASSERT_THAT((*stream)->Next(), IsOk());
  }
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->gateway(), kInFlight, 0)) << cluster_->Logs();
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->small(0), kUsedBlocks, 0)) << cluster_->Logs();
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->large(0), kUsedBlocks, 0)) << cluster_->Logs();
}

}  // namespace
}  // namespace tokenrouter
