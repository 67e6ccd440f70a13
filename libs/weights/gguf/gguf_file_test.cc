#include "libs/weights/gguf/gguf_file.h"

#include "libs/status/status_matchers.h"
#include "libs/weights/testing/gguf_test_bytes.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

auto Parse(const GgufBytes& file) { return GgufFile::Parse(file.bytes(), "m.gguf"); }

GgufBytes SmallFile() {
  GgufBytes file;
  file.Header(2, 8)
      .String("general.architecture", "llama")
      .Scalar<uint32_t>("layers", 4, 30)
      .Scalar<int8_t>("negative", 1, -3)
      .Scalar<float>("epsilon", 6, 0.5F)
      .Scalar<uint8_t>("flag", 7, 1);
  file.Array("words", 8, 2).Text("a b").Text("");
  file.Array("numbers", 5, 3).Put<int32_t>(1).Put<int32_t>(-1).Put<int32_t>(7);
  file.Array("scores", 6, 1).Put<float>(0.25F);
  file.Tensor("a", {4, 2}, 0, 0).Tensor("b", {32}, 8, 32).PadTo(32);
  for (int i = 0; i < 8; ++i) file.Put<float>(static_cast<float>(i));
  for (int i = 0; i < 34; ++i) file.Put<uint8_t>(static_cast<uint8_t>(i));
  return file;
}

TEST(GgufFileTest, ReadsTypedMetadata) {
  const GgufBytes bytes = SmallFile();
  TR_ASSERT_OK_AND_ASSIGN(const auto file, Parse(bytes));
  EXPECT_EQ(*file->GetString("general.architecture"), "llama");
  EXPECT_EQ(*file->GetInt("layers"), 30);
  EXPECT_EQ(*file->GetInt("negative"), -3);
  EXPECT_EQ(*file->GetFloat("epsilon"), 0.5);
  EXPECT_EQ(*file->GetFloat("layers"), 30.0);
  EXPECT_TRUE(*file->GetBool("flag"));
  EXPECT_THAT(*file->GetStrings("words"), ElementsAre("a b", ""));
  EXPECT_THAT(*file->GetInts("numbers"), ElementsAre(1, -1, 7));
  EXPECT_THAT(*file->GetFloats("scores"), ElementsAre(0.25));
}

TEST(GgufFileTest, PlacesTensorsWithRowMajorShapes) {
  const GgufBytes bytes = SmallFile();
  TR_ASSERT_OK_AND_ASSIGN(const auto file, Parse(bytes));
  const TensorView* a = file->FindTensor("a");
  ASSERT_NE(a, nullptr);
  EXPECT_THAT(a->shape, ElementsAre(2, 4));
  EXPECT_EQ(a->rows(), 2);
  EXPECT_EQ(a->row_bytes(), 16);
  EXPECT_EQ(a->bytes.size(), 32U);
  const TensorView* b = file->FindTensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->bytes.size(), 34U);
  EXPECT_EQ(b->bytes[33], std::byte{33});
  EXPECT_EQ(file->FindTensor("c"), nullptr);
}

TEST(GgufFileTest, SaysWhichKeyIsMissingOrOfAnotherType) {
  const GgufBytes bytes = SmallFile();
  TR_ASSERT_OK_AND_ASSIGN(const auto file, Parse(bytes));
  EXPECT_THAT(file->GetInt("nope"), StatusIs(absl::StatusCode::kNotFound,
                                             AllOf(HasSubstr("m.gguf"), HasSubstr("'nope'"))));
  EXPECT_THAT(file->GetInt("words"),
              StatusIs(kInvalid, AllOf(HasSubstr("'words'"), HasSubstr("array of strings"))));
  EXPECT_THAT(file->GetIntOr("words", 1), StatusIs(kInvalid));
  EXPECT_EQ(*file->GetIntOr("nope", 5), 5);
}

TEST(GgufFileTest, RefusesEveryTruncation) {
  const GgufBytes whole = SmallFile();
  for (size_t size = 0; size < whole.size(); ++size) {
    GgufBytes cut = whole;
    cut.Truncate(size);
    EXPECT_THAT(Parse(cut), StatusIs(kInvalid, HasSubstr("m.gguf"))) << size << " bytes";
  }
}

TEST(GgufFileTest, RefusesForeignFilesAndVersions) {
  EXPECT_THAT(Parse(GgufBytes().Put<uint64_t>(0)), StatusIs(kInvalid, HasSubstr("not a GGUF")));
  EXPECT_THAT(Parse(GgufBytes().Header(0, 0, 1)), StatusIs(kInvalid, HasSubstr("version 1")));
  EXPECT_THAT(Parse(GgufBytes().Header(0, 0, 2)), IsOk());
}

TEST(GgufFileTest, RefusesCountsBeyondTheLimits) {
  EXPECT_THAT(Parse(GgufBytes().Header(~0ULL, 0)),
              StatusIs(kInvalid, AllOf(HasSubstr("tensors"), HasSubstr("limit is 65536"))));
  EXPECT_THAT(Parse(GgufBytes().Header(0, ~0ULL)), StatusIs(kInvalid, HasSubstr("metadata keys")));
  EXPECT_THAT(Parse(GgufBytes().Header(0, 1).Array("k", 0, ~0ULL)),
              StatusIs(kInvalid, AllOf(HasSubstr("'k'"), HasSubstr("the limit is"))));
  EXPECT_THAT(Parse(GgufBytes().Header(0, 1).Array("k", 8, 1000)),
              StatusIs(kInvalid, HasSubstr("only 0 bytes follow")));
  EXPECT_THAT(Parse(GgufBytes().Header(0, 1).Array("k", 10, 2).Put<uint64_t>(1)),
              StatusIs(kInvalid, HasSubstr("2 elements, but only 8 bytes follow")));
  EXPECT_THAT(Parse(GgufBytes().Header(0, 1).Put<uint64_t>(1ULL << 63)),
              StatusIs(kInvalid, HasSubstr("the limit is 65535")));
}

TEST(GgufFileTest, RefusesUnknownValueTypesAndNestedArrays) {
  EXPECT_THAT(Parse(GgufBytes().Header(0, 1).Scalar<uint32_t>("k", 13, 0)),
              StatusIs(kInvalid, HasSubstr("unknown type 13")));
  EXPECT_THAT(Parse(GgufBytes().Header(0, 1).Array("k", 9, 0)),
              StatusIs(kInvalid, HasSubstr("array of arrays")));
  EXPECT_THAT(Parse(GgufBytes().Header(0, 1).Scalar<uint64_t>("k", 10, ~0ULL)),
              StatusIs(kInvalid, HasSubstr("2^63-1")));
}

TEST(GgufFileTest, RefusesDuplicates) {
  EXPECT_THAT(Parse(GgufBytes().Header(0, 2).String("k", "a").String("k", "b")),
              StatusIs(kInvalid, HasSubstr("'k' appears twice")));
  GgufBytes file;
  file.Header(2, 0).Tensor("t", {1}, 0, 0).Tensor("t", {1}, 0, 0).PadTo(32).Put<float>(0);
  EXPECT_THAT(Parse(file), StatusIs(kInvalid, HasSubstr("'t' appears twice")));
}

TEST(GgufFileTest, RefusesTensorsThatDoNotFit) {
  const auto one = [](const std::vector<uint64_t>& dimensions, uint32_t tag, uint64_t offset) {
    GgufBytes file;
    file.Header(1, 0).Tensor("t", dimensions, tag, offset).PadTo(32).Put<uint64_t>(0);
    return file;
  };
  EXPECT_THAT(Parse(one({2}, 0, 0)), IsOk());
  EXPECT_THAT(Parse(one({3}, 0, 0)), StatusIs(kInvalid, AllOf(HasSubstr("m.gguf"), HasSubstr("'t'"),
                                                              HasSubstr("truncated"))));
  EXPECT_THAT(Parse(one({2}, 0, 4)), StatusIs(kInvalid, HasSubstr("alignment 32")));
  EXPECT_THAT(Parse(one({2}, 0, ~31ULL)), StatusIs(kInvalid, HasSubstr("'t'")));
  EXPECT_THAT(Parse(one({0}, 0, 0)), StatusIs(kInvalid, HasSubstr("dimension of 0")));
  EXPECT_THAT(Parse(one({31}, 8, 0)), StatusIs(kInvalid, HasSubstr("blocks of 32")));
  EXPECT_THAT(Parse(one({1ULL << 40, 1ULL << 40}, 0, 0)), StatusIs(kInvalid, HasSubstr("'t'")));
  EXPECT_THAT(Parse(one({1, 1, 1, 1, 1}, 0, 0)), StatusIs(kInvalid, HasSubstr("5 dimensions")));
  EXPECT_THAT(Parse(one({2}, 16, 0)),
              StatusIs(kInvalid, AllOf(HasSubstr("GGML type 16"), HasSubstr("Q4_K"))));
}

TEST(GgufFileTest, RefusesAnAlignmentThatIsNoPowerOfTwo) {
  EXPECT_THAT(Parse(GgufBytes().Header(0, 1).Scalar<uint32_t>("general.alignment", 4, 24)),
              StatusIs(kInvalid, HasSubstr("general.alignment")));
}

TEST(GgufFileTest, SaysThatTheFileDoesNotExist) {
  EXPECT_THAT(GgufFile::Open("/nonexistent/m.gguf"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nonexistent/m.gguf")));
  EXPECT_THAT(GgufFile::Open("/"), StatusIs(kInvalid, HasSubstr("regular")));
}

}  // namespace
}  // namespace tokenrouter
