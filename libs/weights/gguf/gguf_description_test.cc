#include "libs/weights/gguf/gguf_description.h"

#include "libs/status/status_matchers.h"
#include "libs/weights/testing/gguf_test_bytes.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// A description without weights but the embedding: 8 channels, two heads, one key-value head.
class Metadata {
 public:
  explicit Metadata(const std::string& architecture = "qwen2") : architecture_(architecture) {
    body_.String("general.architecture", architecture).String("general.name", "Some Model");
    Count("block_count", 2).Count("context_length", 64).Count("embedding_length", 8);
    Count("feed_forward_length", 16).Count("attention.head_count", 2);
    Count("attention.head_count_kv", 1).Float("attention.layer_norm_rms_epsilon", 1e-5F);
  }
  Metadata& Count(const std::string& key, uint32_t value) {
    return Put([&] { body_.Scalar<uint32_t>(architecture_ + "." + key, 4, value); });
  }
  Metadata& Whole(const std::string& key, uint32_t value) {
    return Put([&] { body_.Scalar<uint32_t>(key, 4, value); });
  }
  Metadata& Float(const std::string& key, float value) {
    return Put([&] { body_.Scalar<float>(architecture_ + "." + key, 6, value); });
  }
  Metadata& Text(const std::string& key, const std::string& value) {
    return Put([&] { body_.String(key, value); });
  }
  Metadata& Id(const std::string& key, uint32_t id) {
    return Put([&] { body_.Scalar<uint32_t>("tokenizer.ggml." + key, 4, id); });
  }
  Metadata& Tokens(const std::vector<std::pair<std::string, int32_t>>& tokens) {
    Put([&] { body_.Array("tokenizer.ggml.tokens", 8, tokens.size()); });
    for (const auto& [text, type] : tokens) body_.Text(text);
    Put([&] { body_.Array("tokenizer.ggml.token_type", 5, tokens.size()); });
    for (const auto& [text, type] : tokens) body_.Put<int32_t>(type);
    return *this;
  }
  Metadata& RopeDivisors(std::vector<float> divisors) {
    divisors_ = std::move(divisors);
    return *this;
  }

  absl::StatusOr<ModelDescription> Describe() const {
    GgufBytes file;
    file.Header(divisors_.empty() ? 1 : 2, keys_).Append(body_);
    file.Tensor("token_embd.weight", {8, 4}, 0, 0);
    if (!divisors_.empty()) file.Tensor("rope_freqs.weight", {divisors_.size()}, 0, 128);
    file.PadTo(32);
    for (int i = 0; i < 32; ++i) file.Put<float>(0);
    for (const float divisor : divisors_) file.Put<float>(divisor);
    TR_ASSIGN_OR_RETURN(const auto parsed, GgufFile::Parse(file.bytes(), "m.gguf"));
    return DescribeGguf(*parsed);
  }

 private:
  template <typename F>
  Metadata& Put(const F& put) {
    put();
    ++keys_;
    return *this;
  }

  const std::string architecture_;
  GgufBytes body_;
  uint64_t keys_ = 2;  // The two strings of the constructor.
  std::vector<float> divisors_;
};

TEST(GgufDescriptionTest, ReadsSizesAndDefaults) {
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription model, Metadata().Describe());
  EXPECT_EQ(model.name, "Some Model");
  EXPECT_EQ(model.architecture, Architecture::kQwen2);
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.hidden, 8);
  EXPECT_EQ(model.intermediate, 16);
  EXPECT_EQ(model.heads, 2);
  EXPECT_EQ(model.kv_heads, 1);
  EXPECT_EQ(model.head_dim, 4);
  EXPECT_EQ(model.vocab_rows, 4);
  EXPECT_EQ(model.context_length, 64);
  EXPECT_EQ(model.rope.theta, 10000);
  EXPECT_EQ(model.rope.dim, 4);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_FALSE(model.qkv_bias);
  EXPECT_EQ(model.bos_id, -1);
  EXPECT_TRUE(model.eos_ids.empty());
}

TEST(GgufDescriptionTest, AddsTheControlTokensThatEndAnAnswer) {
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription model,
                          Metadata()
                              .Id("eos_token_id", 2)
                              .Id("bos_token_id", 0)
                              .Id("padding_token_id", 0)
                              .Tokens({{"<|endoftext|>", 3}, {"</s>", 1}, {"<|im_end|>", 3}})
                              .Describe());
  EXPECT_THAT(model.eos_ids, ElementsAre(2, 0));
  EXPECT_EQ(model.bos_id, 0);
  EXPECT_EQ(model.pad_id, 0);
}

TEST(GgufDescriptionTest, ReadsTheWindowOfLlamaFiles) {
  EXPECT_EQ(Metadata("llama").Describe()->sliding_window, 0);
  EXPECT_EQ(Metadata("llama").Count("attention.sliding_window", 48).Describe()->sliding_window, 48);
  EXPECT_EQ(Metadata("qwen2").Count("attention.sliding_window", 48).Describe()->sliding_window, 0);
  EXPECT_THAT(Metadata("llama").Count("attention.sliding_window_pattern", 6).Describe(),
              StatusIs(kInvalid, HasSubstr("sliding_window_pattern")));
}

TEST(GgufDescriptionTest, ReadsRotaryScalings) {
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription yarn, Metadata()
                                                           .Text("qwen2.rope.scaling.type", "yarn")
                                                           .Float("rope.scaling.factor", 4)
                                                           .Describe());
  EXPECT_EQ(yarn.rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(yarn.rope.factor, 4);
  EXPECT_EQ(yarn.rope.original_context, 64);
  EXPECT_EQ(yarn.context_length, 256);
  EXPECT_NEAR(yarn.rope.attention_factor, 1.1386294, 1e-6);
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription weighted,
                          Metadata()
                              .Text("qwen2.rope.scaling.type", "yarn")
                              .Float("rope.scaling.factor", 4)
                              .Float("rope.scaling.attn_factor", 0.5)
                              .Count("rope.scaling.original_context_length", 32)
                              .Describe());
  EXPECT_NEAR(weighted.rope.attention_factor, 0.5 * 1.1386294, 1e-6);
  EXPECT_EQ(weighted.rope.original_context, 32);
  EXPECT_EQ(weighted.context_length, 128);
  EXPECT_EQ(Metadata().Float("rope.scaling.factor", 2).Describe()->rope.scaling,
            RopeScaling::kLinear);
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription divided,
                          Metadata().RopeDivisors({1, 8}).Describe());
  EXPECT_THAT(divided.rope.divisors, ElementsAre(1, 8));
}

TEST(GgufDescriptionTest, RefusesWhatItWouldRunWrongly) {
  EXPECT_THAT(Metadata().Text("qwen2.rope.scaling.type", "longrope").Describe(),
              StatusIs(kInvalid, AllOf(HasSubstr("m.gguf"), HasSubstr("'longrope'"))));
  const auto yarn = [](const char* key, float value) {
    return Metadata()
        .Text("qwen2.rope.scaling.type", "yarn")
        .Float("rope.scaling.factor", 4)
        .Float(std::string("rope.scaling.") + key, value)
        .Describe();
  };
  EXPECT_THAT(yarn("yarn_ext_factor", 0.5F), StatusIs(kInvalid, HasSubstr("yarn_ext_factor")));
  EXPECT_THAT(yarn("yarn_ext_factor", -1.0F), IsOk());
  EXPECT_THAT(yarn("yarn_log_multiplier", 0.1F), StatusIs(kInvalid, HasSubstr("log_multiplier")));
  EXPECT_THAT(yarn("attn_factor", 0.0F), StatusIs(kInvalid, HasSubstr("attn_factor")));
  EXPECT_THAT(Metadata().RopeDivisors({1, 2, 3}).Describe(),
              StatusIs(kInvalid, HasSubstr("rope_freqs.weight")));
  EXPECT_THAT(Metadata().RopeDivisors({1, 0}).Describe(), StatusIs(kInvalid, HasSubstr("divisor")));
  EXPECT_THAT(Metadata("gemma3").Describe(),
              StatusIs(kInvalid, AllOf(HasSubstr("m.gguf"), HasSubstr("'gemma3'"),
                                       HasSubstr("llama, qwen2 and qwen3"))));
  EXPECT_THAT(Metadata().Whole("split.count", 3).Describe(),
              StatusIs(kInvalid, HasSubstr("'split.count' is 3")));
  EXPECT_THAT(Metadata().Count("expert_count", 8).Describe(),
              StatusIs(kInvalid, HasSubstr("experts")));
  EXPECT_THAT(Metadata().Count("attention.value_length", 2).Describe(),
              StatusIs(kInvalid, HasSubstr("value_length")));
  EXPECT_THAT(Metadata().Id("bos_token_id", 4).Describe(),
              StatusIs(kInvalid, HasSubstr("bos token id is 4")));
}

}  // namespace
}  // namespace tokenrouter
