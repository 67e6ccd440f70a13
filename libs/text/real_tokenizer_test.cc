// Checks the tokenizers and chat templates of real models against answers made by other programs:
// tools/bpe_reference.py (ids) and Jinja2 itself (tools/chat_reference.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>

#include "absl/strings/str_split.h"
#include "libs/status/status_matchers.h"
#include "libs/text/chat_template.h"
#include "libs/text/incremental_detokenizer.h"
#include "libs/text/tokenizer.h"

namespace tokenrouter {
namespace {

constexpr char kQwen[] = "qwen2.5-coder-0.5b-instruct-q4_k_m";
constexpr char kLargeQwen[] = "qwen2.5-coder-1.5b-instruct-q4_k_m";
constexpr char kSmol[] = "smollm2-135m-instruct-q4_1";

std::string ModelPath(const std::string& name) {
  if (const char* folder = std::getenv("TOKENROUTER_MODELS"))
    return folder + ("/" + name) + ".gguf";
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "" : home) + "/.cache/tokenrouter/models/" + name + ".gguf";
}

std::vector<std::string> Lines(const std::string& name) {
  std::ifstream file(std::string(TOKENROUTER_TEXT_TESTDATA) + "/" + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  EXPECT_FALSE(lines.empty()) << name;
  return lines;
}

struct Golden {
  std::string text;
  std::vector<TokenId> ids;
};

std::vector<Golden> Goldens(const std::string& name) {
  std::vector<Golden> goldens;
  for (const std::string& line : Lines(name + ".golden")) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    Golden golden{boost::json::value_to<std::string>(boost::json::parse(fields[0])), {}};
    for (size_t i = 1; i < fields.size(); ++i) golden.ids.push_back(std::stoi(fields[i]));
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

// Loads each model once for all tests.
const Tokenizer* LoadOnce(const std::string& name) {
  static auto& loaded = *new std::map<std::string, std::unique_ptr<Tokenizer>>();
  if (loaded[name] == nullptr) {
    auto tokenizer = Tokenizer::Load(ModelPath(name));
    EXPECT_THAT(tokenizer, IsOk());
    if (tokenizer.ok()) loaded[name] = *std::move(tokenizer);
  }
  return loaded[name].get();
}

class RealTokenizerTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(ModelPath(GetParam()))) {
      GTEST_SKIP() << "no model " << ModelPath(GetParam()) << ": run ./tokenrouter setup";
    }
    tokenizer_ = LoadOnce(GetParam());
    ASSERT_NE(tokenizer_, nullptr);
  }
  std::string Stream(const std::vector<TokenId>& ids, bool skip_special) const {
    IncrementalDetokenizer detokenizer(*tokenizer_, skip_special);
    std::string text;
    for (const TokenId id : ids) text += detokenizer.Push(id);
    return text + detokenizer.Flush();
  }

  const Tokenizer* tokenizer_ = nullptr;
};

using RealBpeTest = RealTokenizerTest;
INSTANTIATE_TEST_SUITE_P(Models, RealBpeTest, ::testing::Values(kQwen, kSmol));

TEST_P(RealBpeTest, GivesTheIdsOfTheReference) {
  for (const Golden& golden : Goldens(GetParam())) {
    TR_ASSERT_OK_AND_ASSIGN(const auto ids,
                            tokenizer_->Encode(golden.text, {.parse_special = true}));
    EXPECT_EQ(ids, golden.ids) << golden.text;
  }
}

TEST_P(RealBpeTest, TextSurvivesTheRoundTripAndTheStream) {
  int changed = 0;
  for (const Golden& golden : Goldens(GetParam())) {
    TR_ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer_->Encode(golden.text));
    const std::string text = tokenizer_->Decode(ids, /*skip_special=*/false);
    EXPECT_EQ(Stream(ids, false), text);
    // Qwen composes characters first, and SmolLM2 has no token for some bytes: then the text that
    // comes back must at least be stable.
    if (text == golden.text) continue;
    ++changed;
    TR_ASSERT_OK_AND_ASSIGN(const auto again, tokenizer_->Encode(text));
    EXPECT_EQ(tokenizer_->Decode(again, false), text) << golden.text;
  }
  EXPECT_LE(changed, 4);
}

TEST_P(RealBpeTest, RandomIdsStreamToTheWholeDecode) {
  const uint32_t seed = 4711;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> ids(random() % 50);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % (tokenizer_->usable_ids() + 5));
    ASSERT_EQ(Stream(ids, true), tokenizer_->Decode(ids, true));
    ASSERT_EQ(Stream(ids, false), tokenizer_->Decode(ids, false));
  }
}

// Time per byte must not grow with the text, nor with one piece that cutting leaves whole.
TEST_P(RealBpeTest, EncodingStaysLinear) {
  std::string mixed;
  for (const Golden& golden : Goldens(GetParam())) mixed += golden.text + "\n";
  const std::vector<std::pair<const char*, std::string>> kinds = {
      {"mixed", mixed}, {"one word", "abcdefghij"}, {"spaces", " "}, {"punctuation", "=-"}};
  for (const auto& [kind, unit] : kinds) {
    double rate[2] = {0, 0};
    const size_t sizes[2] = {100000, 2000000};
    for (int i = 0; i < 2; ++i) {
      std::string text;
      while (text.size() < sizes[i]) text += unit;
      text += "x";
      const std::clock_t start = std::clock();  // Processor time: other processes do not count.
      TR_ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer_->Encode(text));
      const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      rate[i] = text.size() / seconds / 1e6;
      EXPECT_FALSE(ids.empty());
    }
    std::cout << "encode " << kind << ": " << rate[0] << " MB/s for 100 kB, " << rate[1]
              << " MB/s for 2 MB\n";
    EXPECT_GT(rate[1], rate[0] / 8) << kind;
  }
}

using RealTemplateTest = RealTokenizerTest;
INSTANTIATE_TEST_SUITE_P(Models, RealTemplateTest, ::testing::Values(kQwen, kLargeQwen, kSmol));

TEST_P(RealTemplateTest, RendersAsJinjaDoes) {
  TR_ASSERT_OK_AND_ASSIGN(const auto chat, ChatTemplate::Create(*tokenizer_));
  int cases = 0;
  for (const std::string& line : Lines("chat.golden")) {
    const boost::json::value golden = boost::json::parse(line);
    const auto text = [&](const char* key) {
      return boost::json::value_to<std::string>(golden.at(key));
    };
    if (text("model") != GetParam() + std::string(".gguf")) continue;
    ++cases;
    const std::string messages = text("messages"), tools = text("tools");
    TR_ASSERT_OK_AND_ASSIGN(
        const std::string rendered,
        chat->Render({.messages_json = messages,
                      .tools_json = tools,
                      .add_generation_prompt = golden.at("add_generation_prompt").as_bool()}));
    EXPECT_EQ(rendered, text("text"));
  }
  EXPECT_EQ(cases, 4);
}

TEST_P(RealTemplateTest, WritesTheDefaultSystemPrompt) {
  TR_ASSERT_OK_AND_ASSIGN(const auto chat, ChatTemplate::Create(*tokenizer_));
  TR_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      chat->Render({.messages_json = R"([{"role":"user","content":"Hello"}])"}));
  const std::string system =
      GetParam() == std::string(kSmol)
          ? "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
          : "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
  EXPECT_EQ(text, "<|im_start|>system\n" + system +
                      "<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
}

TEST(RealPairTest, BothQwenModelsHaveOneTokenizer) {
  if (!std::filesystem::exists(ModelPath(kQwen)) ||
      !std::filesystem::exists(ModelPath(kLargeQwen))) {
    GTEST_SKIP() << "no model pair: run ./tokenrouter setup";
  }
  TR_ASSERT_OK_AND_ASSIGN(const auto small, Tokenizer::Load(ModelPath(kQwen)));
  TR_ASSERT_OK_AND_ASSIGN(const auto large, Tokenizer::Load(ModelPath(kLargeQwen)));
  EXPECT_EQ(small->Fingerprint(), large->Fingerprint());
  EXPECT_EQ(small->usable_ids(), 151665);
  EXPECT_THAT(small->eos_ids(), ::testing::ElementsAre(151645, 151643));
}

}  // namespace
}  // namespace tokenrouter
