// The client's view of the prefix cache: the four binaries, the real engine, a pair of tiny models.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <set>

#include "libs/status/status_matchers.h"
#include "tests/support/cluster.h"
#include "tests/support/http_client.h"
#include "tests/support/tiny_model.h"

namespace tokenrouter {
namespace {

constexpr int kBlock = 32;  // Of the real engine.
constexpr const char* kUsedBlocks = "tokenrouter_worker_kv_blocks{state=\"used\"}";
constexpr const char* kHitIds = "tokenrouter_worker_prefix_hit_tokens_total";
constexpr const char* kReadIds = "tokenrouter_worker_catch_up_ids_total";

struct Answer {
  std::vector<int32_t> ids;
  int64_t cached = -1;
};

class PrefixCacheProcessTest : public ::testing::Test {
 protected:
  void Start(bool prefix_cache) {
    const std::string root = ::testing::TempDir() + "prefix_pair_";
    ASSERT_THAT(WriteTinyPair(root), IsOk());
    auto cluster = Cluster::Start(
        {.tokenizer = root + "small",
         .worker_flags = {"--weight_format=int8", "--kv_bytes=16777216", "--threads=1",
                          prefix_cache ? "--prefix_cache=true" : "--prefix_cache=false"},
         .small_flags = {"--model=" + root + "small"},
         .large_flags = {"--model=" + root + "large"},
         .scheduler_flags = {"--service_mode=routed"}});
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
  }

  // The answers of all choices.
  std::vector<Answer> Complete(const std::vector<int32_t>& prompt, boost::json::object routing,
                               int choices) {
    const boost::json::object body = {{"model", "tokenrouter"},
                                      {"prompt", boost::json::array(prompt.begin(), prompt.end())},
                                      {"max_tokens", 24},
                                      {"temperature", 0.7},
                                      {"seed", 3},
                                      {"n", choices},
                                      {"ignore_eos", true},
                                      {"return_routing", true},
                                      {"routing", std::move(routing)}};
    const auto response = HttpFetch(cluster_->gateway().port, "POST", "/v1/completions",
                                    boost::json::serialize(body));
    std::vector<Answer> answers(choices);
    EXPECT_THAT(response, IsOk());
    if (!response.ok() || response->code != 200) {
      ADD_FAILURE() << (response.ok() ? response->body : "") << cluster_->Logs();
      return answers;
    }
    const boost::json::value json = boost::json::parse(response->body);
    for (const auto& choice : json.at("choices").as_array()) {
      Answer& answer = answers.at(choice.at("index").to_number<size_t>());
      for (const auto& token : choice.at("routing").at("tokens").as_array()) {
        answer.ids.push_back(token.at("id").to_number<int32_t>());
      }
      answer.cached =
          json.at("usage").at("prompt_tokens_details").at("cached_tokens").to_number<int64_t>();
    }
    // The next request finds the KV of this one only once both sides have closed it.
    EXPECT_TRUE(Cluster::WaitForMetric(cluster_->small(0), kUsedBlocks, 0));
    EXPECT_TRUE(Cluster::WaitForMetric(cluster_->large(0), kUsedBlocks, 0));
    return answers;
  }
  Answer Complete(const std::vector<int32_t>& prompt, boost::json::object routing) {
    return Complete(prompt, std::move(routing), /*choices=*/1)[0];
  }

  std::unique_ptr<Cluster> cluster_;
};

std::vector<int32_t> LongPrompt() {
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 200; ++i) prompt.push_back(5 + (i * 7 + i / 13) % 60);
  return prompt;
}

TEST_F(PrefixCacheProcessTest, TheSamePromptAgainIsCachedWhicheverModelOpensAndSaysTheSame) {
  Start(/*prefix_cache=*/true);
  const auto whole_blocks = (LongPrompt().size() - 1) / kBlock * kBlock;
  for (const char* algorithm : {"never", "always"}) {
    const Answer first = Complete(LongPrompt(), {{"algorithm", algorithm}});
    const Answer second = Complete(LongPrompt(), {{"algorithm", algorithm}});
    EXPECT_EQ(second.ids, first.ids);
    EXPECT_EQ(second.cached, static_cast<int64_t>(whole_blocks)) << algorithm;
    EXPECT_EQ(second.ids.size(), 24u);
  }
  EXPECT_GT(Cluster::Metric(cluster_->small(0), kHitIds), 0);
  EXPECT_GT(Cluster::Metric(cluster_->large(0), "tokenrouter_worker_cached_blocks"), 0);
}

TEST_F(PrefixCacheProcessTest, AConversationRunsEachIdOnceOnTheLargeSideAndSaysTheSameText) {
  std::vector<std::vector<int32_t>> said[2];
  for (const bool prefix_cache : {false, true}) {
    Start(prefix_cache);
    std::vector<int32_t> history = LongPrompt();
    for (int turn = 1; turn <= 5; ++turn) {
      const Answer answer = Complete(history, {{"algorithm", "random"}, {"p", 0.3}});
      if (!prefix_cache || turn == 1) {
        EXPECT_EQ(answer.cached, 0);
      } else {
        EXPECT_GT(answer.cached, static_cast<int64_t>(history.size()) - 24 - 9 - kBlock);
      }
      said[prefix_cache].push_back(answer.ids);
      history.insert(history.end(), answer.ids.begin(), answer.ids.end());
      const double read = Cluster::Metric(cluster_->large(0), kReadIds);
      if (prefix_cache) {
        // And the part of a block that a chat turn leaves unfinished.
        EXPECT_LE(read, static_cast<double>(history.size()) + kBlock * (turn - 1)) << turn;
      } else {
        EXPECT_GE(read, 200 * turn - 24);
      }
      for (int32_t i = 0; i < 9; ++i) history.push_back(10 + (turn + i) % 50);
    }
  }
  EXPECT_EQ(said[true], said[false]);
}

TEST_F(PrefixCacheProcessTest, ChoicesReadThePromptOnceOnEachSideAndTheFirstSaysWhatOneAloneSays) {
  constexpr int kChoices = 5;
  const int64_t prompt = std::ssize(LongPrompt());
  const int64_t whole_blocks = (prompt - 1) / kBlock * kBlock;
  const boost::json::object routing = {{"algorithm", "random"}, {"p", 0.3}};
  Start(/*prefix_cache=*/false);
  const std::vector<Answer> apart = Complete(LongPrompt(), routing, kChoices);
  EXPECT_EQ(apart[0].ids, Complete(LongPrompt(), routing).ids);
  EXPECT_GE(Cluster::Metric(cluster_->large(0), kReadIds), prompt * kChoices);

  Start(/*prefix_cache=*/true);
  const std::vector<Answer> shared = Complete(LongPrompt(), routing, kChoices);
  std::set<std::vector<int32_t>> different;
  for (int i = 0; i < kChoices; ++i) {
    EXPECT_EQ(shared[i].ids, apart[i].ids) << i;
    EXPECT_EQ(shared[i].ids.size(), 24u) << i;
    EXPECT_EQ(shared[i].cached, 0) << "one request had to compute the prompt";
    different.insert(shared[i].ids);
  }
  EXPECT_EQ(different.size(), size_t{kChoices});
  for (Member* worker : {&cluster_->small(0), &cluster_->large(0)}) {
    EXPECT_EQ(Cluster::Metric(*worker, kHitIds), (kChoices - 1) * whole_blocks);
  }
  // Each computes the rest of the prompt's last block, and the tokens of the small model.
  EXPECT_LE(Cluster::Metric(cluster_->large(0), kReadIds),
            whole_blocks + kChoices * (prompt - whole_blocks + 24));
  EXPECT_EQ(Complete(LongPrompt(), routing, kChoices)[0].cached, whole_blocks);
}

}  // namespace
}  // namespace tokenrouter
