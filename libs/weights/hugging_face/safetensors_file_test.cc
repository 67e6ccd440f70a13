#include "libs/weights/hugging_face/safetensors_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "libs/status/status_matchers.h"
#include "libs/weights/hugging_face/safetensors_folder.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string FileBytes(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header +
         std::string(data_bytes, '\1');
}

auto Parse(const std::string& bytes) {
  return SafetensorsFile::Parse(std::as_bytes(std::span(bytes)), "m.safetensors");
}

std::string One(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

TEST(SafetensorsFileTest, ReadsTensorsOfTheThreeTypes) {
  const std::string bytes = FileBytes(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},)"
      R"("c":{"dtype":"F16","shape":[],"data_offsets":[32,34]}})",
      34);
  TR_ASSERT_OK_AND_ASSIGN(const auto file, Parse(bytes));
  EXPECT_EQ(file->tensors().size(), 3U);
  EXPECT_THAT(file->FindTensor("a")->shape, ElementsAre(2, 3));
  EXPECT_EQ(file->FindTensor("b")->type, TensorType::kBF16);
  EXPECT_EQ(file->FindTensor("c")->bytes.size(), 2U);
  EXPECT_EQ(file->FindTensor("d"), nullptr);
}

TEST(SafetensorsFileTest, RefusesEveryTruncation) {
  const std::string whole = FileBytes(One("F32", "[2]", "[0,8]"), 8);
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    EXPECT_THAT(Parse(cut), StatusIs(kInvalid, HasSubstr("m.safetensors"))) << size << " bytes";
  }
}

TEST(SafetensorsFileTest, RefusesDescriptionsThatDoNotFit) {
  const auto error = [](const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
    return Parse(FileBytes(One(dtype, shape, offsets), 8)).status();
  };
  EXPECT_THAT(error("F32", "[2]", "[0,8]"), IsOk());
  EXPECT_THAT(error("I64", "[1]", "[0,8]"),
              StatusIs(kInvalid, AllOf(HasSubstr("'t'"), HasSubstr("type I64"))));
  EXPECT_THAT(error("F32", "[3]", "[0,8]"), StatusIs(kInvalid, HasSubstr("needs 12 bytes")));
  EXPECT_THAT(error("F32", "[2]", "[4,12]"), StatusIs(kInvalid, HasSubstr("truncated")));
  EXPECT_THAT(error("F32", "[2]", "[8,0]"), StatusIs(kInvalid, HasSubstr("data_offsets")));
  EXPECT_THAT(error("F32", "[2]", "[-8,0]"), StatusIs(kInvalid, HasSubstr("data_offsets")));
  EXPECT_THAT(error("F32", "[2]", "[0]"), StatusIs(kInvalid, HasSubstr("data_offsets")));
  EXPECT_THAT(error("F32", "[0]", "[0,0]"), StatusIs(kInvalid, HasSubstr("positive")));
  EXPECT_THAT(error("F32", "[-2,-1]", "[0,8]"), StatusIs(kInvalid, HasSubstr("positive")));
  EXPECT_THAT(error("F32", "[4294967296,4294967296]", "[0,8]"), StatusIs(kInvalid));
  EXPECT_THAT(error("F32", "[1.5]", "[0,8]"), StatusIs(kInvalid, HasSubstr("'shape'")));
  EXPECT_THAT(error("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"),
              StatusIs(kInvalid, HasSubstr("9 dimensions")));
}

TEST(SafetensorsFileTest, RefusesHeadersThatAreNoJsonObject) {
  EXPECT_THAT(Parse(FileBytes("[]", 0)), StatusIs(kInvalid, HasSubstr("expected an object")));
  EXPECT_THAT(Parse(FileBytes("{", 0)), StatusIs(kInvalid, HasSubstr("not valid JSON")));
  EXPECT_THAT(Parse(FileBytes(R"({"t":3})", 0)), StatusIs(kInvalid, HasSubstr("'t'")));
  EXPECT_THAT(Parse(FileBytes(std::string(10000, '['), 0)), StatusIs(kInvalid));
  EXPECT_THAT(Parse(std::string(16, '\xFF')), StatusIs(kInvalid, HasSubstr("the limit is")));
}

class SafetensorsFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }

  const std::string folder_ = ::testing::TempDir() + "safetensors_folder_test";
};

TEST_F(SafetensorsFolderTest, FindsTensorsInTheShardsOfTheIndex) {
  Write("s1", FileBytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4));
  Write("s2", FileBytes(R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8));
  Write("model.safetensors.index.json", R"({"weight_map":{"a":"s1","b":"s2"}})");
  TR_ASSERT_OK_AND_ASSIGN(const auto folder, SafetensorsFolder::Open(folder_));
  EXPECT_EQ(folder->shards().size(), 2U);
  EXPECT_THAT(folder->FindTensor("b")->shape, ElementsAre(2));
  EXPECT_EQ(folder->FindTensor("c"), nullptr);
}

TEST_F(SafetensorsFolderTest, SaysWhatTheIndexPromisesAndTheFolderLacks) {
  Write("s1", FileBytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4));
  Write("model.safetensors.index.json", R"({"weight_map":{"b":"s1"}})");
  EXPECT_THAT(SafetensorsFolder::Open(folder_),
              StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("s1"), HasSubstr("'b'"))));
  Write("model.safetensors.index.json", R"({"weight_map":{"a":"s9"}})");
  EXPECT_THAT(SafetensorsFolder::Open(folder_),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("/s9"), HasSubstr("index.json"), HasSubstr("'a'"))));
  Write("s2", FileBytes(R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4));
  Write("model.safetensors.index.json", R"({"weight_map":{"a":"s1","b":"s2"}})");
  EXPECT_THAT(
      SafetensorsFolder::Open(folder_),
      StatusIs(kInvalid, AllOf(HasSubstr("/s2"), HasSubstr("'b'"), HasSubstr("truncated"))));
  Write("model.safetensors.index.json", R"({"weight_map":{"a":"s1\u0000x"}})");
  EXPECT_THAT(SafetensorsFolder::Open(folder_), StatusIs(kInvalid, HasSubstr("file name")));
  Write("model.safetensors.index.json", R"({"weight_map":{"a":"../s1"}})");
  EXPECT_THAT(SafetensorsFolder::Open(folder_), StatusIs(kInvalid, HasSubstr("'../s1'")));
  Write("model.safetensors.index.json", R"({"weights":1})");
  EXPECT_THAT(SafetensorsFolder::Open(folder_), StatusIs(kInvalid, HasSubstr("weight_map")));
}

TEST_F(SafetensorsFolderTest, SaysThatThereAreNoWeights) {
  EXPECT_THAT(SafetensorsFolder::Open(folder_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("model.safetensors")));
}

}  // namespace
}  // namespace tokenrouter
