// The promises of routing on real forward passes: the four binaries, the real engine, a pair of
// tiny seeded models.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <future>

#include "libs/status/status_matchers.h"
#include "tests/engine/golden_file.h"
#include "tests/support/chat.h"
#include "tests/support/cluster.h"
#include "tests/support/http_client.h"
#include "tests/support/tiny_model.h"

namespace tokenrouter {
namespace {

constexpr const char* kUsedBlocks = "tokenrouter_worker_kv_blocks{state=\"used\"}";

// Requests of different lengths, every second one sampled.
std::vector<ChatRequest> SixteenRequests() {
  std::vector<ChatRequest> requests;
  for (int i = 0; i < 16; ++i) {
    ChatRequest request{.prompt = std::string(static_cast<size_t>(10 + 13 * i), 'a' + i),
                        .max_tokens = 24,
                        .seed = i};
    request.temperature = i % 2 == 0 ? 0.0 : 0.9;
    requests.push_back(request);
  }
  return requests;
}

class TinyPairProcessTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { StartCluster(16 << 20); }

  // `kv_bytes` of each worker.
  void StartCluster(int kv_bytes) {
    const std::string root = ::testing::TempDir() + "tiny_pair_";
    ASSERT_THAT(WriteTinyPair(root), IsOk());
    auto cluster = Cluster::Start(
        {.tokenizer = root + "small",
         .worker_flags = {std::string("--weight_format=") + GetParam(), "--device_key=cpu",
                          "--kv_bytes=" + std::to_string(kv_bytes), "--threads=1"},
         .small_flags = {"--model=" + root + "small"},
         .large_flags = {"--model=" + root + "large"},
         .scheduler_flags = {"--service_mode=routed"}});
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
  }

  ChatAnswer Ask(boost::json::object routing, ChatRequest request = {}) {
    request.routing = std::move(routing);
    const auto answer = Chat(cluster_->gateway().port, request);
    EXPECT_THAT(answer, IsOk()) << cluster_->Logs();
    return answer.value_or(ChatAnswer());
  }

  // Ids that /v1/completions answers to a prompt of ids, greedily.
  std::vector<TokenId> Complete(const boost::json::array& prompt, const std::string& algorithm) {
    const boost::json::object body = {{"model", "tokenrouter"},
                                      {"prompt", prompt},
                                      {"max_tokens", 32},
                                      {"temperature", 0},
                                      {"ignore_eos", true},
                                      {"return_routing", true},
                                      {"routing", {{"algorithm", algorithm}}}};
    const auto response = HttpFetch(cluster_->gateway().port, "POST", "/v1/completions",
                                    boost::json::serialize(body));
    EXPECT_THAT(response, IsOk());
    std::vector<TokenId> ids;
    if (!response.ok() || response->code != 200) return ids;
    const boost::json::value answer = boost::json::parse(response->body);
    for (const auto& token : answer.at("choices").at(0).at("routing").at("tokens").as_array()) {
      ids.push_back(token.at("id").to_number<TokenId>());
    }
    return ids;
  }

  std::vector<std::vector<int64_t>> OneByOne(const boost::json::object& routing) {
    std::vector<std::vector<int64_t>> ids;
    for (const ChatRequest& request : SixteenRequests()) ids.push_back(Ask(routing, request).ids);
    return ids;
  }

  std::vector<std::vector<int64_t>> AllAtOnce(const boost::json::object& routing) {
    std::vector<std::future<ChatAnswer>> answers;
    for (const ChatRequest& request : SixteenRequests()) {
      answers.push_back(std::async(std::launch::async,
                                   [this, &routing, request] { return Ask(routing, request); }));
    }
    std::vector<std::vector<int64_t>> ids;
    for (auto& answer : answers) ids.push_back(answer.get().ids);
    return ids;
  }

  void ExpectNoBlockInUse() {
    EXPECT_TRUE(Cluster::WaitForMetric(cluster_->small(0), kUsedBlocks, 0));
    EXPECT_TRUE(Cluster::WaitForMetric(cluster_->large(0), kUsedBlocks, 0));
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_P(TinyPairProcessTest, KeepsItsPromisesOnRealForwardPasses) {
  const ChatAnswer never = Ask({{"algorithm", "never"}});
  const ChatAnswer always = Ask({{"algorithm", "always"}});
  EXPECT_EQ(never.CountBy("large"), 0);
  EXPECT_EQ(always.CountBy("small"), 0);
  EXPECT_NE(never.ids, always.ids);
  EXPECT_EQ(Ask({{"algorithm", "entropy"}, {"threshold", 0.0}}).ids, always.ids);
  EXPECT_EQ(Ask({{"algorithm", "speculative"}, {"window", 4}}).ids, always.ids);
  EXPECT_EQ(Ask({{"algorithm", "entropy"}, {"threshold", 100.0}}).ids, never.ids);

  ChatRequest sampled{.temperature = 0.8, .seed = 5};
  EXPECT_EQ(Ask({{"algorithm", "speculative"}, {"window", 3}}, sampled).ids,
            Ask({{"algorithm", "always"}}, sampled).ids);
}

// never and always must give the independent numpy decoder's greedy text of the same two models
// (tools/golden).
TEST_P(TinyPairProcessTest, NeverAndAlwaysAreTheGreedyTextsOfAnIndependentDecoder) {
  if (std::string(GetParam()) != "fp32")
    GTEST_SKIP() << "the golden texts are those of fp32 weights";
  const boost::json::object small = ReadGolden("tiny_qwen2_small"),
                            large = ReadGolden("tiny_qwen2_large");
  EXPECT_EQ(Complete(small.at("prompt").as_array(), "never"), GoldenIds(small, "greedy"));
  EXPECT_EQ(Complete(large.at("prompt").as_array(), "always"), GoldenIds(large, "greedy"));
}

TEST_P(TinyPairProcessTest, RandomRoutesItsShare) {
  int large = 0, total = 0;
  for (int seed = 1; seed <= 4; ++seed) {
    const ChatAnswer answer =
        Ask({{"algorithm", "random"}, {"p", 0.25}}, {.max_tokens = 128, .seed = seed});
    large += answer.CountBy("large");
    total += static_cast<int>(answer.ids.size());
  }
  // 512 draws of 0.25: mean 128, standard deviation 9.8; five of them either way.
  EXPECT_EQ(total, 512);
  EXPECT_NEAR(large, 128, 49);
}

TEST_P(TinyPairProcessTest, TokensDoNotDependOnTheLoadAndEveryBlockComesBack) {
  const boost::json::object routing = {{"algorithm", "random"}, {"p", 0.3}};
  EXPECT_EQ(AllAtOnce(routing), OneByOne(routing));
  ExpectNoBlockInUse();
}

TEST_P(TinyPairProcessTest, TokensDoNotDependOnWhetherKvWasKeptOrRebuilt) {
  const boost::json::object routing = {{"algorithm", "random"}, {"p", 0.3}};
  const auto kept = OneByOne(routing);
  StartCluster(1 << 20);
  EXPECT_EQ(AllAtOnce(routing), kept);
  const char* const dropped = "tokenrouter_worker_preemptions_total";
  EXPECT_GT(
      Cluster::Metric(cluster_->small(0), dropped) + Cluster::Metric(cluster_->large(0), dropped),
      0)
      << "the KV was large enough to keep everything: the test shows nothing";
  ExpectNoBlockInUse();
}

INSTANTIATE_TEST_SUITE_P(Formats, TinyPairProcessTest, ::testing::Values("int8", "int4", "fp32"));

}  // namespace
}  // namespace tokenrouter
