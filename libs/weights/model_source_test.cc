#include "libs/weights/model_source.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "libs/status/status_matchers.h"
#include "libs/weights/testing/gguf_test_bytes.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// One layer of 4 channels, one head of 4, feed-forward 2, 3 rows of vocabulary. Every value of a
// tensor is its index, so row r of a matrix with 4 columns starts with 4 r.
class OneLayerGguf {
 public:
  explicit OneLayerGguf(const std::string& architecture) : architecture_(architecture) {
    Add("token_embd.weight", {4, 3});
    Add("output_norm.weight", {4});
    for (const char* name : {"attn_norm", "ffn_norm"}) Add(Layer(name), {4});
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
      Add(Layer(name), {4, 4});
    }
    for (const char* name : {"ffn_gate", "ffn_up"}) Add(Layer(name), {4, 2});
    Add(Layer("ffn_down"), {2, 4});
  }

  static std::string Layer(const std::string& name, const std::string& kind = "weight") {
    return "blk.0." + name + "." + kind;
  }
  // Dimensions innermost first. Replaces a tensor of that name.
  void Add(const std::string& name, std::vector<uint64_t> dimensions) {
    Remove(name);
    tensors_.emplace_back(name, std::move(dimensions));
  }
  void Remove(const std::string& name) {
    std::erase_if(tensors_, [&](const auto& tensor) { return tensor.first == name; });
  }

  absl::StatusOr<std::unique_ptr<ModelSource>> Open() const {
    const std::string path = ::testing::TempDir() + "model_source_test.gguf";
    const GgufBytes file = Bytes();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.bytes().data()),
               static_cast<std::streamsize>(file.size()));
    auto source = ModelSource::Open(path);
    std::remove(path.c_str());  // The mapping keeps the content.
    return source;
  }

 private:
  GgufBytes Bytes() const {
    GgufBytes file;
    file.Header(tensors_.size(), 7).String("general.architecture", architecture_);
    const auto count = [&](const char* key, uint32_t value) {
      file.Scalar<uint32_t>(architecture_ + "." + key, 4, value);
    };
    count("block_count", 1);
    count("context_length", 16);
    count("embedding_length", 4);
    count("feed_forward_length", 2);
    count("attention.head_count", 1);
    file.Scalar<float>(architecture_ + ".attention.layer_norm_rms_epsilon", 6, 1e-5F);
    constexpr uint64_t kSlot = 64;  // The largest tensor: 16 floats.
    for (size_t i = 0; i < tensors_.size(); ++i) {
      file.Tensor(tensors_[i].first, tensors_[i].second, 0, i * kSlot);
    }
    file.PadTo(32);
    for (size_t i = 0; i < tensors_.size(); ++i) {
      for (int value = 0; value < 16; ++value) file.Put<float>(static_cast<float>(value));
    }
    return file;
  }

  const std::string architecture_;
  std::vector<std::pair<std::string, std::vector<uint64_t>>> tensors_;
};

std::vector<float> Rows(const ModelSource& source, TensorRole role, int64_t first, int64_t count) {
  const auto tensor = source.Tensor(role, 0);
  EXPECT_THAT(tensor, IsOk());
  std::vector<float> values(static_cast<size_t>(count * tensor->columns()));
  ModelSource::ReadRows(*tensor, first, count, values);
  return values;
}

TEST(ModelSourceTest, PutsQueryRowsOfLlamaFilesInHalfSplitOrder) {
  TR_ASSERT_OK_AND_ASSIGN(const auto source, OneLayerGguf("llama").Open());
  // Stored: first half's pair 0, second half's pair 0, first half's pair 1, second half's pair 1.
  for (const TensorRole role : {TensorRole::kQuery, TensorRole::kKey}) {
    EXPECT_THAT(Rows(*source, role, 0, 4),
                ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15));
    EXPECT_THAT(Rows(*source, role, 2, 1), ElementsAre(4, 5, 6, 7));
  }
  EXPECT_THAT(Rows(*source, TensorRole::kValue, 1, 1), ElementsAre(4, 5, 6, 7));
}

TEST(ModelSourceTest, PutsQueryBiasesOfLlamaFilesInHalfSplitOrder) {
  OneLayerGguf file("llama");
  for (const char* name : {"attn_q", "attn_k", "attn_v"}) {
    file.Add(OneLayerGguf::Layer(name, "bias"), {4});
  }
  TR_ASSERT_OK_AND_ASSIGN(const auto source, file.Open());
  EXPECT_TRUE(source->description().qkv_bias);
  EXPECT_THAT(Rows(*source, TensorRole::kQueryBias, 0, 1), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(Rows(*source, TensorRole::kValueBias, 0, 1), ElementsAre(0, 1, 2, 3));
}

TEST(ModelSourceTest, LeavesQueryRowsOfQwen2FilesAlone) {
  TR_ASSERT_OK_AND_ASSIGN(const auto source, OneLayerGguf("qwen2").Open());
  EXPECT_THAT(Rows(*source, TensorRole::kQuery, 1, 1), ElementsAre(4, 5, 6, 7));
}

TEST(ModelSourceTest, DescribesTheFile) {
  TR_ASSERT_OK_AND_ASSIGN(const auto source, OneLayerGguf("llama").Open());
  EXPECT_EQ(source->description().vocab_rows, 3);
  EXPECT_EQ(source->description().kv_heads, 1);
  EXPECT_EQ(source->description().rope.theta, 10000);
  EXPECT_TRUE(source->description().tied_embeddings);
  EXPECT_NE(source->gguf(), nullptr);
}

TEST(ModelSourceTest, SaysWhichTensorIsMissing) {
  for (const std::string name :
       {"blk.0.ffn_down.weight", "output_norm.weight", "token_embd.weight"}) {
    OneLayerGguf file("llama");
    file.Remove(name);
    EXPECT_THAT(file.Open(),
                StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr(".gguf"), HasSubstr(name))));
  }
}

TEST(ModelSourceTest, AsksQwen3FilesForTheNormsOfTheirHeads) {
  OneLayerGguf file("qwen3");
  EXPECT_THAT(file.Open(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("blk.0.attn_q_norm.weight")));
  file.Add(OneLayerGguf::Layer("attn_q_norm"), {4});
  file.Add(OneLayerGguf::Layer("attn_k_norm"), {2});
  EXPECT_THAT(file.Open(),
              StatusIs(kInvalid, AllOf(HasSubstr("'blk.0.attn_k_norm.weight'"), HasSubstr("[4]"))));
  file.Add(OneLayerGguf::Layer("attn_k_norm"), {4});
  TR_ASSERT_OK_AND_ASSIGN(const auto source, file.Open());
  EXPECT_TRUE(source->description().qk_norm);
  EXPECT_THAT(Rows(*source, TensorRole::kQuery, 1, 1), ElementsAre(4, 5, 6, 7));
}

TEST(ModelSourceTest, SaysWhichTensorHasAnotherShape) {
  OneLayerGguf file("llama");
  file.Add("blk.0.attn_k.weight", {4, 2});
  EXPECT_THAT(file.Open(), StatusIs(kInvalid, AllOf(HasSubstr("'blk.0.attn_k.weight'"),
                                                    HasSubstr("[2, 4]"), HasSubstr("[4, 4]"))));
}

TEST(ModelSourceTest, RefusesOtherArchitectures) {
  EXPECT_THAT(
      OneLayerGguf("gemma2").Open(),
      StatusIs(kInvalid, AllOf(HasSubstr("'gemma2'"), HasSubstr("llama, qwen2 and qwen3"))));
}

TEST(ModelSourceTest, RefusesLayersAndBiasesTheModelDoesNotHave) {
  TR_ASSERT_OK_AND_ASSIGN(const auto source, OneLayerGguf("llama").Open());
  EXPECT_THAT(source->Tensor(TensorRole::kQuery, 1), StatusIs(kInvalid, HasSubstr("layer 1")));
  EXPECT_THAT(source->Tensor(TensorRole::kQueryBias, 0),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("blk.0.attn_q.bias")));
}

TEST(ModelSourceTest, FingerprintFollowsTheContent) {
  TR_ASSERT_OK_AND_ASSIGN(const auto one, OneLayerGguf("llama").Open());
  TR_ASSERT_OK_AND_ASSIGN(const auto same, OneLayerGguf("llama").Open());
  TR_ASSERT_OK_AND_ASSIGN(const auto other, OneLayerGguf("qwen2").Open());
  EXPECT_EQ(one->ContentFingerprint(), same->ContentFingerprint());
  EXPECT_NE(one->ContentFingerprint(), other->ContentFingerprint());
  EXPECT_EQ(one->ContentFingerprint().size(), 16U);
}

TEST(ModelSourceTest, SaysThatThePathDoesNotExist) {
  EXPECT_THAT(ModelSource::Open("/nonexistent/model"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nonexistent/model")));
}

}  // namespace
}  // namespace tokenrouter
