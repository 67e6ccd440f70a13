// Tests ModelSource over a Hugging Face folder: its errors for files that are damaged or do not
// belong together.
#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libs/status/status_matchers.h"
#include "libs/weights/model_source.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

using Shapes = std::map<std::string, std::vector<int64_t>>;

// One layer of 4 channels, one head of 4, feed-forward 2, 3 rows of vocabulary, untied.
Shapes OneLayer() {
  const std::string layer = "model.layers.0.";
  Shapes shapes = {{"model.embed_tokens.weight", {3, 4}},
                   {"model.norm.weight", {4}},
                   {"lm_head.weight", {3, 4}},
                   {layer + "input_layernorm.weight", {4}},
                   {layer + "post_attention_layernorm.weight", {4}},
                   {layer + "mlp.gate_proj.weight", {2, 4}},
                   {layer + "mlp.up_proj.weight", {2, 4}},
                   {layer + "mlp.down_proj.weight", {4, 2}}};
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    shapes[absl::StrCat(layer, "self_attn.", name, ".weight")] = {4, 4};
  }
  return shapes;
}

class ModelSourceFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    Write("config.json",
          R"({"model_type":"llama","num_hidden_layers":1,"hidden_size":4,"intermediate_size":2,)"
          R"("num_attention_heads":1,"vocab_size":3,"max_position_embeddings":16})");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }
  // All F32; the last `missing` bytes are left out.
  void WriteShard(const std::string& name, const Shapes& shapes, size_t missing = 0) const {
    std::vector<std::string> entries;
    size_t end = 0;
    for (const auto& [tensor, shape] : shapes) {
      size_t bytes = 4;
      for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
      entries.push_back(absl::StrCat("\"", tensor, "\":{\"dtype\":\"F32\",\"shape\":[",
                                     absl::StrJoin(shape, ","), "],\"data_offsets\":[", end, ",",
                                     end + bytes, "]}"));
      end += bytes;
    }
    const std::string header = absl::StrCat("{", absl::StrJoin(entries, ","), "}");
    const uint64_t length = header.size();
    Write(name, std::string(reinterpret_cast<const char*>(&length), 8) + header +
                    std::string(end - missing, '\0'));
  }
  // Two shards and their index; the second holds the head alone.
  void WriteSharded(Shapes first, size_t missing_of_second) const {
    first.erase("lm_head.weight");
    WriteShard("one.safetensors", first);
    WriteShard("two.safetensors", {{"lm_head.weight", {3, 4}}}, missing_of_second);
    std::vector<std::string> entries = {"\"lm_head.weight\":\"two.safetensors\""};
    for (const auto& [tensor, shape] : first) {
      entries.push_back(absl::StrCat("\"", tensor, "\":\"one.safetensors\""));
    }
    Write("model.safetensors.index.json",
          absl::StrCat("{\"weight_map\":{", absl::StrJoin(entries, ","), "}}"));
  }
  absl::Status Open() const { return ModelSource::Open(folder_).status(); }

  const std::string folder_ = ::testing::TempDir() + "model_source_folder_test";
};

TEST_F(ModelSourceFolderTest, OpensOneFileOrShards) {
  WriteShard("model.safetensors", OneLayer());
  EXPECT_THAT(Open(), IsOk());
  WriteSharded(OneLayer(), 0);
  std::filesystem::remove(folder_ + "/model.safetensors");
  EXPECT_THAT(Open(), IsOk());
}

TEST_F(ModelSourceFolderTest, SaysWhichTensorIsMissingFromWhichFile) {
  for (const auto& [tensor, shape] : OneLayer()) {
    Shapes shapes = OneLayer();
    shapes.erase(tensor);
    WriteShard("model.safetensors", shapes);
    EXPECT_THAT(Open(), StatusIs(kNotFound, AllOf(HasSubstr("/model.safetensors:"),
                                                  HasSubstr("'" + tensor + "'"))));
  }
  Shapes shapes = OneLayer();
  shapes.erase("model.norm.weight");
  WriteSharded(shapes, 0);
  EXPECT_THAT(Open(), StatusIs(kNotFound, AllOf(HasSubstr("/model.safetensors.index.json:"),
                                                HasSubstr("'model.norm.weight'"))));
}

TEST_F(ModelSourceFolderTest, SaysWhichTensorHasAnotherShapeInWhichFile) {
  for (const auto& [tensor, shape] : OneLayer()) {
    Shapes shapes = OneLayer();
    shapes[tensor].push_back(1);
    WriteShard("model.safetensors", shapes);
    EXPECT_THAT(Open(),
                StatusIs(kInvalid, AllOf(HasSubstr("/model.safetensors:"),
                                         HasSubstr("'" + tensor + "'"), HasSubstr("asks for"))));
  }
  Shapes shapes = OneLayer();
  shapes["model.norm.weight"] = {5};
  WriteSharded(shapes, 0);
  EXPECT_THAT(Open(), StatusIs(kInvalid, AllOf(HasSubstr("/one.safetensors:"), HasSubstr("[5]"),
                                               HasSubstr("[4]"))));
}

TEST_F(ModelSourceFolderTest, SaysWhichFileAndTensorIsTruncated) {
  WriteShard("model.safetensors", OneLayer(), 1);
  EXPECT_THAT(Open(),
              StatusIs(kInvalid, AllOf(HasSubstr("/model.safetensors:"),
                                       HasSubstr("'model.norm.weight'"), HasSubstr("truncated"))));
  WriteSharded(OneLayer(), 1);
  EXPECT_THAT(Open(),
              StatusIs(kInvalid, AllOf(HasSubstr("/two.safetensors:"),
                                       HasSubstr("'lm_head.weight'"), HasSubstr("truncated"))));
}

TEST_F(ModelSourceFolderTest, SaysWhichShardOfTheIndexIsMissing) {
  WriteSharded(OneLayer(), 0);
  std::filesystem::remove(folder_ + "/two.safetensors");
  EXPECT_THAT(Open(),
              StatusIs(kNotFound, AllOf(HasSubstr("/two.safetensors:"), HasSubstr("index.json"),
                                        HasSubstr("'lm_head.weight'"))));
}

TEST_F(ModelSourceFolderTest, RefusesSizesThatOverflow) {
  const std::string huge = absl::StrCat(int64_t{1} << 62);
  Write("model.safetensors.index.json", R"({"weight_map":{"t":"one.safetensors"}})");
  const std::string header = absl::StrCat(R"({"t":{"dtype":"F32","shape":[)", huge, ",", huge,
                                          R"(],"data_offsets":[0,8]}})");
  const uint64_t length = header.size();
  Write("one.safetensors",
        std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(8, '\0'));
  EXPECT_THAT(Open(), StatusIs(kInvalid, AllOf(HasSubstr("/one.safetensors:"), HasSubstr("'t'"))));
  Write("config.json", absl::StrCat(R"({"model_type":"llama","num_hidden_layers":1,"hidden_size":)",
                                    huge, R"(,"intermediate_size":2,"num_attention_heads":1,)",
                                    R"("vocab_size":3,"max_position_embeddings":16})"));
  EXPECT_THAT(Open(),
              StatusIs(kInvalid, AllOf(HasSubstr("config.json"), HasSubstr("hidden size"))));
}

}  // namespace
}  // namespace tokenrouter
