#include "libs/weights/hugging_face/hf_description.h"

#include <filesystem>
#include <fstream>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Llama 3.2 1B's sizes; `more` are further fields, each with a leading comma.
std::string Config(const std::string& more = "", const std::string& type = "llama") {
  return R"({"model_type":")" + type +
         R"(","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":16,)"
         R"("num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,)"
         R"("max_position_embeddings":131072,"rms_norm_eps":1e-05,"rope_theta":500000.0)" +
         more + "}";
}

class HfDescriptionTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + "/" + name) << content;
  }
  absl::StatusOr<ModelDescription> Describe(const std::string& config) {
    Write("config.json", config);
    return DescribeHfFolder(folder_);
  }

  const std::string folder_ = ::testing::TempDir() + "some-model";
};

TEST_F(HfDescriptionTest, ReadsSizesAndDefaults) {
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription model, Describe(Config()));
  EXPECT_EQ(model.name, "some-model");
  EXPECT_EQ(model.architecture, Architecture::kLlama);
  EXPECT_EQ(model.layers, 16);
  EXPECT_EQ(model.head_dim, 64);
  EXPECT_EQ(model.rope.dim, 64);
  EXPECT_EQ(model.rope.theta, 500000);
  EXPECT_EQ(model.rope.scaling, RopeScaling::kNone);
  EXPECT_FALSE(model.tied_embeddings);
  EXPECT_FALSE(model.qkv_bias);
  EXPECT_EQ(model.bos_id, -1);
  EXPECT_TRUE(model.eos_ids.empty());
}

TEST_F(HfDescriptionTest, KnowsTheBiasesOfEachFamily) {
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription qwen, Describe(Config("", "qwen2")));
  EXPECT_TRUE(qwen.qkv_bias);
  EXPECT_FALSE(qwen.output_bias);
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription llama,
                          Describe(Config(R"(,"attention_bias":true)")));
  EXPECT_TRUE(llama.qkv_bias);
  EXPECT_TRUE(llama.output_bias);
}

TEST_F(HfDescriptionTest, KnowsTheHeadsOfQwen3) {
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription stated,
                          Describe(Config(R"(,"head_dim":96,"attention_bias":false)", "qwen3")));
  EXPECT_EQ(stated.architecture, Architecture::kQwen3);
  EXPECT_TRUE(stated.qk_norm);
  EXPECT_FALSE(stated.qkv_bias);
  EXPECT_FALSE(stated.output_bias);
  EXPECT_EQ(stated.head_dim, 96);
  EXPECT_EQ(stated.rope.dim, 96);
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription absent, Describe(Config("", "qwen3")));
  EXPECT_EQ(absent.head_dim, 128);
}

TEST_F(HfDescriptionTest, PrefersTheEosListOfTheGenerationConfig) {
  Write("generation_config.json", R"({"eos_token_id":[7,5],"pad_token_id":3})");
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription model,
                          Describe(Config(R"(,"eos_token_id":9,"bos_token_id":1)")));
  EXPECT_THAT(model.eos_ids, ElementsAre(7, 5));
  EXPECT_EQ(model.bos_id, 1);
  EXPECT_EQ(model.pad_id, 3);
  Write("generation_config.json", "{");
  EXPECT_THAT(Describe(Config()), StatusIs(kInvalid, HasSubstr("generation_config.json")));
}

TEST_F(HfDescriptionTest, ReadsRotaryScalings) {
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription llama,
                          Describe(Config(R"(,"rope_scaling":{"rope_type":"llama3","factor":32.0,)"
                                          R"("low_freq_factor":1.0,"high_freq_factor":4.0,)"
                                          R"("original_max_position_embeddings":8192})")));
  EXPECT_EQ(llama.rope.scaling, RopeScaling::kLlama3);
  EXPECT_EQ(llama.rope.factor, 32);
  EXPECT_EQ(llama.rope.original_context, 8192);
  TR_ASSERT_OK_AND_ASSIGN(const ModelDescription yarn,
                          Describe(Config(R"(,"rope_scaling":{"type":"yarn","factor":4.0,)"
                                          R"("original_max_position_embeddings":32768})",
                                          "qwen2")));
  EXPECT_EQ(yarn.rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(yarn.context_length, 131072);
  EXPECT_EQ(yarn.rope.attention_factor, 0);
  TR_ASSERT_OK_AND_ASSIGN(
      const ModelDescription newer,
      Describe(Config(R"(,"rope_parameters":{"rope_type":"linear","rope_theta":1e6,"factor":2})")));
  EXPECT_EQ(newer.rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(newer.rope.theta, 1e6);
}

TEST_F(HfDescriptionTest, StretchesTheContextOfYarn) {
  TR_ASSERT_OK_AND_ASSIGN(
      const ModelDescription model,
      Describe(Config(R"(,"rope_scaling":{"rope_type":"yarn","factor":2,"mscale":1.0,)"
                      R"("mscale_all_dim":0.5,"beta_fast":16,"beta_slow":2})",
                      "qwen3")));
  EXPECT_EQ(model.rope.original_context, 131072);
  EXPECT_EQ(model.context_length, 262144);
  EXPECT_EQ(model.rope.beta_fast, 16);
  EXPECT_EQ(model.rope.beta_slow, 2);
  EXPECT_NEAR(model.rope.attention_factor, 1.0693147 / 1.0346574, 1e-6);
}

TEST_F(HfDescriptionTest, RefusesRotaryEmbeddingsItWouldRunWrongly) {
  const auto refused = [&](const std::string& scaling, const std::string& field) {
    const absl::Status status = Describe(Config(R"(,"rope_scaling":)" + scaling)).status();
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("config.json"), HasSubstr(field)));
  };
  refused(R"({"rope_type":"longrope","factor":2})", "'longrope', supported: default, linear");
  refused(R"({"rope_type":"dynamic","factor":2})", "'dynamic'");
  refused(R"({"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4})",
          "original_max_position_embeddings");
  refused(R"({"rope_type":"yarn","factor":0})", "scaling factor is 0");
  refused(R"({"rope_type":"yarn","factor":4,"attention_factor":-1,"truncate":false})", "truncate");
  refused(R"({"rope_type":"yarn"})", "'factor'");
  refused(R"({"type":"default","mrope_section":[16,24,24]})", "mrope_section");
  refused(R"({"rope_type":"default","partial_rotary_factor":0.5})", "partial_rotary_factor");
  refused(R"({"full_attention":{"rope_type":"default"}})", "one object per layer type");
  refused("7", "'rope_scaling' is no object");
}

TEST_F(HfDescriptionTest, RefusesWhatItWouldRunWrongly) {
  EXPECT_THAT(Describe(Config("", "gemma2")),
              StatusIs(kInvalid, AllOf(HasSubstr("config.json"), HasSubstr("'gemma2'"),
                                       HasSubstr("llama, mistral, qwen2, qwen3"))));
  EXPECT_THAT(Describe(Config(R"(,"hidden_act":"gelu")")), StatusIs(kInvalid, HasSubstr("gelu")));
  EXPECT_THAT(Describe(Config(R"(,"quantization_config":{"quant_method":"gptq","bits":4})")),
              StatusIs(kInvalid, AllOf(HasSubstr("config.json"), HasSubstr("quantization_config"),
                                       HasSubstr("gptq, supported: absent"))));
  EXPECT_THAT(Describe(Config(R"(,"quantization_config":null)")), IsOk());
  EXPECT_THAT(Describe(Config(R"(,"architectures":["LlamaForSequenceClassification"])")),
              StatusIs(kInvalid, AllOf(HasSubstr("'architectures'"), HasSubstr("ForCausalLM"))));
  EXPECT_THAT(Describe(Config(R"(,"mlp_bias":true)")), StatusIs(kInvalid, HasSubstr("mlp_bias")));
}

TEST_F(HfDescriptionTest, KnowsTheWindowOfEachFamily) {
  const auto window = [&](const std::string& more, const std::string& type) {
    const auto model = Describe(Config(more, type));
    EXPECT_THAT(model, IsOk());
    return model->sliding_window;
  };
  EXPECT_EQ(window(R"(,"sliding_window":1024)", "mistral"), 1024);
  EXPECT_EQ(window(R"(,"sliding_window":null)", "mistral"), 0);
  EXPECT_EQ(window("", "mistral"), 4096);
  EXPECT_EQ(window(R"(,"sliding_window":1024)", "llama"), 0);
  EXPECT_EQ(window(R"(,"sliding_window":1024,"use_sliding_window":false)", "qwen2"), 0);
  // The model of Config() has 16 layers.
  const std::string used = R"(,"sliding_window":1024,"use_sliding_window":true)";
  EXPECT_EQ(window(used, "qwen2"), 0);
  EXPECT_EQ(window(used + R"(,"max_window_layers":16)", "qwen3"), 0);
  EXPECT_EQ(window(used + R"(,"max_window_layers":0)", "qwen3"), 1024);
  EXPECT_EQ(window(used + R"(,"layer_types":["sliding_attention","sliding_attention"])", "qwen3"),
            1024);
  EXPECT_EQ(window(R"(,"layer_types":["full_attention"])", "qwen3"), 0);
}

TEST_F(HfDescriptionTest, RefusesWindowsThatDifferBetweenLayers) {
  const std::string used = R"(,"sliding_window":1024,"use_sliding_window":true)";
  EXPECT_THAT(Describe(Config(used + R"(,"max_window_layers":8)", "qwen2")),
              StatusIs(kInvalid, AllOf(HasSubstr("config.json"), HasSubstr("'max_window_layers'"),
                                       HasSubstr("16 layers"))));
  EXPECT_THAT(
      Describe(Config(R"(,"layer_types":["full_attention","sliding_attention"])", "qwen3")),
      StatusIs(kInvalid, AllOf(HasSubstr("'layer_types'"), HasSubstr("sliding_attention"))));
  EXPECT_THAT(Describe(Config(R"(,"layer_types":["linear_attention"])", "qwen3")),
              StatusIs(kInvalid, HasSubstr("'linear_attention'")));
  EXPECT_THAT(Describe(Config(R"(,"layer_types":[3])", "qwen3")),
              StatusIs(kInvalid, HasSubstr("an array of strings")));
  EXPECT_THAT(Describe(Config(R"(,"sliding_window":0)", "mistral")),
              StatusIs(kInvalid, HasSubstr("'sliding_window' is 0")));
}

TEST_F(HfDescriptionTest, SaysWhichFieldIsMissingOrWrong) {
  EXPECT_THAT(Describe(R"({"model_type":"llama"})"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("num_hidden_layers")));
  EXPECT_THAT(Describe(Config(R"(,"head_dim":"x")")), StatusIs(kInvalid, HasSubstr("head_dim")));
  EXPECT_THAT(Describe(Config(R"(,"head_dim":0)")), StatusIs(kInvalid, HasSubstr("head dim")));
  EXPECT_THAT(Describe(Config(R"(,"eos_token_id":128256)")),
              StatusIs(kInvalid, HasSubstr("eos token id is 128256")));
}

TEST_F(HfDescriptionTest, SaysThatThereIsNoConfig) {
  EXPECT_THAT(DescribeHfFolder(folder_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("config.json")));
}

}  // namespace
}  // namespace tokenrouter
