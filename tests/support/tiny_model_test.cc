#include "tests/support/tiny_model.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "libs/status/status_matchers.h"
#include "libs/weights/model_source.h"
#include "tests/support/tiny_family.h"
#include "tests/support/tiny_tokenizer.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string TempPath(const std::string& name) {
  return ::testing::TempDir() + "tiny_model_test_" + name;
}

std::vector<float> AllRows(const ModelSource& source, TensorRole role, int64_t layer) {
  const auto tensor = source.Tensor(role, layer);
  EXPECT_THAT(tensor, IsOk());
  std::vector<float> values(static_cast<size_t>(tensor->rows() * tensor->columns()));
  ModelSource::ReadRows(*tensor, 0, tensor->rows(), values);
  return values;
}

class TinyModelTest : public ::testing::TestWithParam<std::string> {
 protected:
  static TinyModelSpec Spec(const std::string& size, uint64_t seed) {
    return *TinyFamily(GetParam(), size, seed);
  }
};

TEST_P(TinyModelTest, HoldsTheSameValuesInEveryFormat) {
  const TinyModelSpec spec = Spec("small", 5);
  const std::vector<TinyTensor> tensors = TinyTensors(spec);
  for (const auto format : {TinyFormat::kFolderF32, TinyFormat::kFolderBf16, TinyFormat::kGgufF32,
                            TinyFormat::kGgufF16}) {
    const std::string path = TempPath("format" + std::to_string(static_cast<int>(format)));
    ASSERT_THAT(WriteTinyModel(spec, format, path), IsOk());
    TR_ASSERT_OK_AND_ASSIGN(const auto source, ModelSource::Open(path));
    for (const TinyTensor& tensor : tensors) {
      EXPECT_EQ(AllRows(*source, tensor.role, tensor.layer), tensor.values)
          << "format " << static_cast<int>(format) << " role " << static_cast<int>(tensor.role);
    }
    std::filesystem::remove_all(path);
  }
}

TEST_P(TinyModelTest, IsDescribedAlikeInBothFormats) {
  const TinyModelSpec spec = Spec("large", 6);
  const std::string folder = TempPath("described");
  const std::string file = TempPath("described.gguf");
  ASSERT_THAT(WriteTinyModel(spec, TinyFormat::kFolderF32, folder), IsOk());
  ASSERT_THAT(WriteTinyModel(spec, TinyFormat::kGgufF32, file), IsOk());
  for (const std::string& path : {folder, file}) {
    TR_ASSERT_OK_AND_ASSIGN(const auto source, ModelSource::Open(path));
    const ModelDescription& model = source->description();
    const ModelDescription expected = DescribeTiny(spec);
    EXPECT_EQ(model.architecture, spec.architecture);
    EXPECT_EQ(model.layers, 3);
    EXPECT_EQ(model.hidden, 128);
    EXPECT_EQ(model.intermediate, 256);
    EXPECT_EQ(model.heads, 4);
    EXPECT_EQ(model.kv_heads, 2);
    EXPECT_EQ(model.head_dim, expected.head_dim);
    EXPECT_EQ(model.vocab_rows, 320);
    EXPECT_EQ(model.context_length, 2048);
    EXPECT_NEAR(model.rms_epsilon, 1e-5, 1e-11);
    EXPECT_EQ(model.rope.theta, expected.rope.theta);
    EXPECT_NEAR(RopeAttentionFactor(model.rope), RopeAttentionFactor(expected.rope), 1e-7);
    EXPECT_EQ(model.rope.dim, expected.head_dim);
    EXPECT_EQ(model.tied_embeddings, spec.tied_embeddings);
    EXPECT_EQ(model.qkv_bias, expected.qkv_bias);
    EXPECT_EQ(model.qk_norm, expected.qk_norm);
    EXPECT_EQ(model.sliding_window, expected.sliding_window);
    EXPECT_EQ(model.pad_id, kTinyEndOfText);
    EXPECT_THAT(model.eos_ids, ElementsAre(kTinyImEnd, kTinyEndOfText));
    std::filesystem::remove_all(path);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TinyModelTest, ::testing::ValuesIn(TinyFamilies()),
                         [](const auto& info) { return info.param; });

TEST(TinyModelTest, HasTheSameValuesOnEveryMachine) {
  const TinyTensor embedding = TinyTensors(TinySmall(Architecture::kLlama, 1)).front();
  EXPECT_THAT(std::vector<float>(embedding.values.begin(), embedding.values.begin() + 6),
              ElementsAre(8.625F, -7.75F, -0.2451171875F, -0.58203125F, -0.359375F, 0.3828125F));
}

TEST(TinyModelTest, DiffersBySeed) {
  EXPECT_NE(TinyTensors(TinySmall(Architecture::kLlama, 1)).front().values,
            TinyTensors(TinySmall(Architecture::kLlama, 2)).front().values);
}

TEST(TinyModelTest, SharesTheEmbeddingWhenTied) {
  TinyModelSpec spec = TinySmall(Architecture::kLlama, 1);
  spec.tied_embeddings = true;
  for (const auto format : {TinyFormat::kFolderF32, TinyFormat::kGgufF32}) {
    const std::string path = TempPath("tied" + std::to_string(static_cast<int>(format)));
    ASSERT_THAT(WriteTinyModel(spec, format, path), IsOk());
    TR_ASSERT_OK_AND_ASSIGN(const auto source, ModelSource::Open(path));
    EXPECT_TRUE(source->description().tied_embeddings);
    EXPECT_EQ(source->Tensor(TensorRole::kOutput)->bytes.data(),
              source->Tensor(TensorRole::kTokenEmbedding)->bytes.data());
    std::filesystem::remove_all(path);
  }
}

TEST(TinyModelTest, RefusesSpecsOutOfRange) {
  TinyModelSpec spec;
  spec.vocab_rows = 258;
  EXPECT_THAT(WriteTinyModel(spec, TinyFormat::kGgufF32, TempPath("bad")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tokenizer needs 259")));
  spec = {};
  spec.hidden = 96;
  EXPECT_THAT(WriteTinyModel(spec, TinyFormat::kGgufF32, TempPath("bad")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("multiple of 64")));
}

TEST(TinyTokenizerTest, SpellsBytesAsByteLevelFilesDo) {
  const std::vector<std::string> tokens = TinyTokens();
  ASSERT_EQ(tokens.size(), static_cast<size_t>(kTinyTokenizerSize));
  EXPECT_EQ(tokens[0], "Ā");
  EXPECT_EQ(tokens[' '], "Ġ");
  EXPECT_EQ(tokens['\n'], "Ċ");
  EXPECT_EQ(tokens['a'], "a");
  EXPECT_EQ(tokens[0xAD], "Ń");
  EXPECT_EQ(tokens[kTinyImEnd], "<|im_end|>");
}

}  // namespace
}  // namespace tokenrouter
