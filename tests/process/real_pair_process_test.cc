// The default pair, once, through the four real binaries: never, always, entropy and speculative
// decoding.
#include "libs/status/status_matchers.h"
#include "tests/support/chat.h"
#include "tests/support/cluster.h"
#include "tests/support/real_model.h"

namespace tokenrouter {
namespace {

constexpr const char* kUsedBlocks = "tokenrouter_worker_kv_blocks{state=\"used\"}";

TEST(RealPairProcessTest, KeepsThePromisesOfRouting) {
  const std::string small = RealModelPath(kSmallModelFile), large = RealModelPath(kLargeModelFile);
  if (!HasRealModel(kSmallModelFile) || !HasRealModel(kLargeModelFile)) {
    GTEST_SKIP() << "the model pair is not there: ./tokenrouter models pull";
  }
  TR_ASSERT_OK_AND_ASSIGN(const auto cluster,
                          Cluster::Start({.tokenizer = small,
                                          .worker_flags = {"--device_key=cpu"},
                                          .small_flags = {"--model=" + small},
                                          .large_flags = {"--model=" + large},
                                          .scheduler_flags = {"--service_mode=routed"}}));
  const auto ask = [&cluster](boost::json::object routing) {
    ChatRequest request{.prompt = "Write a Python function that reverses a string.",
                        .max_tokens = 24};
    request.routing = std::move(routing);
    const auto answer = ChatStreaming(cluster->gateway().port, request);
    EXPECT_THAT(answer, IsOk()) << cluster->Logs();
    return answer.value_or(ChatAnswer());
  };
  const ChatAnswer never = ask({{"algorithm", "never"}});
  const ChatAnswer always = ask({{"algorithm", "always"}});
  EXPECT_EQ(never.CountBy("small"), 24);
  EXPECT_EQ(always.CountBy("large"), 24);
  EXPECT_THAT(always.text, ::testing::HasSubstr("```python")) << "a coding model answers with code";
  EXPECT_EQ(ask({{"algorithm", "entropy"}, {"threshold", 0.0}}).ids, always.ids);
  EXPECT_EQ(ask({{"algorithm", "speculative"}, {"window", 4}}).ids, always.ids);
  const ChatAnswer entropy = ask({{"algorithm", "entropy"}, {"threshold", 0.45}});
  EXPECT_EQ(entropy.ids.size(), 24u);
  EXPECT_GT(entropy.CountBy("small"), 0);
  EXPECT_TRUE(Cluster::WaitForMetric(cluster->small(0), kUsedBlocks, 0));
  EXPECT_TRUE(Cluster::WaitForMetric(cluster->large(0), kUsedBlocks, 0));
}

}  // namespace
}  // namespace tokenrouter
