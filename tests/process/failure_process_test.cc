// The client's view of dying processes and leaving clients, through the four real binaries on timed
// engines.
#include <signal.h>

#include <future>

#include "libs/status/status_matchers.h"
#include "tests/process/timed_cluster.h"
#include "tests/support/chat.h"
#include "tests/support/http_client.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

constexpr const char* kUsedBlocks = "tokenrouter_worker_kv_blocks{state=\"used\"}";

ChatRequest LongRequest(int seed) {
  ChatRequest request{.prompt = "Count " + std::to_string(seed), .max_tokens = 200, .seed = seed};
  // Windows of one to four tokens: whatever is disturbed must not cut one short.
  request.routing = {{"algorithm", "random"}, {"p", 0.2}, {"window", 1 + seed % 4}};
  return request;
}

class FailureProcessTest : public ::testing::Test {
 protected:
  void StartCluster(int small, int large, std::vector<std::string> scheduler_flags = {}) {
    auto cluster = StartTimedCluster(::testing::TempDir() + "failure_process", small, large,
                                     std::move(scheduler_flags));
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
  }
  int port() { return cluster_->gateway().port; }

  // Starts streams, disturbs the cluster while they run, and expects the tokens of an undisturbed
  // run.
  void ExpectSameTokensDespite(const std::function<void()>& disturb) {
    constexpr int kStreams = 6;
    std::vector<std::vector<int64_t>> expected;
    for (int i = 0; i < kStreams; ++i) {
      const auto answer = Chat(port(), LongRequest(i));
      ASSERT_THAT(answer, IsOk()) << cluster_->Logs();
      expected.push_back(answer->ids);
    }
    std::vector<std::promise<void>> started(kStreams);
    std::vector<std::future<ChatAnswer>> answers;
    for (int i = 0; i < kStreams; ++i) {
      answers.push_back(
          std::async(std::launch::async, [this, i, &started] { return Follow(i, &started[i]); }));
    }
    for (auto& promise : started) promise.get_future().wait();
    disturb();
    for (int i = 0; i < kStreams; ++i)
      EXPECT_EQ(answers[i].get().ids, expected[i]) << "stream " << i << cluster_->Logs();
  }

  // Streams one request; fulfils `started` after its tenth event.
  ChatAnswer Follow(int seed, std::promise<void>* started) {
    ChatAnswer answer;
    int events = 0;
    auto stream =
        EventStream::Open(port(), "/v1/chat/completions", ChatBody(LongRequest(seed), true));
    EXPECT_THAT(stream, IsOk());
    while (stream.ok()) {
      const auto event = (*stream)->Next();
      if (++events == 10) started->set_value();
      if (!event.ok() || !event->has_value() || **event == "[DONE]") {
        EXPECT_THAT(event, IsOk());
        break;
      }
      EXPECT_THAT(AddEvent(**event, &answer), IsOk());
    }
    if (events < 10) started->set_value();
    return answer;
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(FailureProcessTest, StreamsSurviveTheKillOfASmallWorker) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(2, 1));
  ExpectSameTokensDespite([this] { cluster_->small(0).process->Signal(SIGKILL); });
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->small(1), kUsedBlocks, 0));
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->large(0), kUsedBlocks, 0));
}

TEST_F(FailureProcessTest, StreamsSurviveTheKillOfALargeWorker) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(1, 2));
  ExpectSameTokensDespite([this] { cluster_->large(0).process->Signal(SIGKILL); });
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->small(0), kUsedBlocks, 0));
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->large(1), kUsedBlocks, 0));
}

TEST_F(FailureProcessTest, StreamsSurviveAFrozenLargeWorker) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(1, 2));
  ExpectSameTokensDespite([this] { cluster_->large(0).process->Signal(SIGSTOP); });
}

TEST_F(FailureProcessTest, StreamsSurviveTheRestartOfTheScheduler) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(1, 1));
  ExpectSameTokensDespite([this] { ASSERT_THAT(cluster_->RestartScheduler(), IsOk()); });
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->small(0), kUsedBlocks, 0));
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->large(0), kUsedBlocks, 0));
}

TEST_F(FailureProcessTest, FailsByPolicyWhenTheLargePoolIsGone) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(1, 1, {"--large_pool_gone=fail"}));
  cluster_->large(0).process->Signal(SIGKILL);
  EXPECT_THAT(Chat(port(), LongRequest(1)),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("large")));
}

TEST_F(FailureProcessTest, GoesOnMarkedWithTheSmallModelByPolicy) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(1, 1, {"--large_pool_gone=small_only"}));
  cluster_->large(0).process->Signal(SIGKILL);
  const auto answer = Chat(port(), LongRequest(1));
  ASSERT_THAT(answer, IsOk()) << cluster_->Logs();
  EXPECT_EQ(answer->ids.size(), 200u);
  EXPECT_TRUE(answer->usage.at("routing").at("degraded").as_bool());
}

TEST_F(FailureProcessTest, WaitsByPolicyUntilALargeWorkerComes) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(1, 1, {"--large_pool_gone=wait", "--wait_ms=30000"}));
  const auto expected = Chat(port(), LongRequest(3));
  ASSERT_THAT(expected, IsOk()) << cluster_->Logs();
  cluster_->large(0).process->Signal(SIGKILL);
  cluster_->large(0).process->WaitForExit(absl::Seconds(10));
  auto answer = std::async(std::launch::async, [this] { return Chat(port(), LongRequest(3)); });
  ASSERT_THAT(cluster_->AddWorker(/*large=*/true), IsOk());
  const auto got = answer.get();
  ASSERT_THAT(got, IsOk()) << cluster_->Logs();
  EXPECT_EQ(got->ids, expected->ids);
}

TEST_F(FailureProcessTest, RefusesWithAReasonWhenNoSmallWorkerComes) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(1, 1, {"--wait_ms=200"}));
  cluster_->small(0).process->Signal(SIGKILL);
  cluster_->small(0).process->WaitForExit(absl::Seconds(10));
  const auto response =
      HttpFetch(port(), "POST", "/v1/chat/completions", ChatBody(LongRequest(1), false));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->code, 503) << response->body;
  EXPECT_THAT(response->body, HasSubstr("small"));
  EXPECT_TRUE(response->headers.contains("retry-after")) << response->body;
}

TEST_F(FailureProcessTest, AClientThatLeavesFreesBothSides) {
  ASSERT_NO_FATAL_FAILURE(StartCluster(1, 1));
  for (int events : {0, 1, 5, 40}) {
    auto stream =
        EventStream::Open(port(), "/v1/chat/completions", ChatBody(LongRequest(events), true));
    ASSERT_THAT(stream, IsOk());
    for (int i = 0; i < events; ++i) ASSERT_THAT((*stream)->Next(), IsOk());
  }
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->small(0), kUsedBlocks, 0)) << cluster_->Logs();
  EXPECT_TRUE(Cluster::WaitForMetric(cluster_->large(0), kUsedBlocks, 0)) << cluster_->Logs();
}

}  // namespace
}  // namespace tokenrouter
