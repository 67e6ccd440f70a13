#include "libs/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "libs/status/status_matchers.h"
#include "libs/text/tiny_vocabulary.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TokenizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/tiny_tokenizer_folder";
    gguf_ = ::testing::TempDir() + "/tiny_tokenizer.gguf";
    WriteTinyFolder(tiny_, folder_);
    WriteTinyGguf(tiny_, gguf_);
    TR_ASSERT_OK_AND_ASSIGN(from_folder_, Tokenizer::Load(folder_));
    TR_ASSERT_OK_AND_ASSIGN(from_gguf_, Tokenizer::Load(gguf_));
  }
  TokenId Id(const std::string& bytes) const {
    for (TokenId id = 0; id < from_folder_->usable_ids(); ++id) {
      if (from_folder_->TokenBytes(id) == bytes) return id;
    }
    return -1;
  }

  const TinyVocabulary tiny_ = MakeTinyVocabulary();
  std::string folder_;
  std::string gguf_;
  std::unique_ptr<Tokenizer> from_folder_;
  std::unique_ptr<Tokenizer> from_gguf_;
};

TEST_F(TokenizerTest, MergesByRankWithinAWord) {
  TR_ASSERT_OK_AND_ASSIGN(const auto ids, from_folder_->Encode("the other"));
  EXPECT_THAT(ids, ElementsAre(Id("the"), Id(" "), Id("o"), Id("the"), Id("r")));
}

TEST_F(TokenizerTest, FolderAndGgufOfOneVocabularyAgree) {
  EXPECT_EQ(from_folder_->Fingerprint(), from_gguf_->Fingerprint());
  EXPECT_EQ(from_folder_->usable_ids(), from_gguf_->usable_ids());
  EXPECT_EQ(from_folder_->Fingerprint().size(), 16u);
  for (const std::string text :
       {"", "the the", "1234 !?\n\n  x", "佛 e\u0301 🙂", "<|im_end|> the"}) {
    for (const bool parse : {false, true}) {
      TR_ASSERT_OK_AND_ASSIGN(const auto a, from_folder_->Encode(text, {.parse_special = parse}));
      TR_ASSERT_OK_AND_ASSIGN(const auto b, from_gguf_->Encode(text, {.parse_special = parse}));
      EXPECT_EQ(a, b) << text;
    }
  }
}

TEST_F(TokenizerTest, FingerprintChangesWithAnyTokenAndWithTheEndToken) {
  TinyVocabulary other = tiny_;
  other.tokens[other.tool_call] = "<tool_calls>";
  WriteTinyGguf(other, gguf_ + ".other");
  TR_ASSERT_OK_AND_ASSIGN(const auto changed, Tokenizer::Load(gguf_ + ".other"));
  EXPECT_NE(changed->Fingerprint(), from_gguf_->Fingerprint());
  other = tiny_;
  std::swap(other.im_end, other.end_of_text);
  WriteTinyGguf(other, gguf_ + ".other");
  TR_ASSERT_OK_AND_ASSIGN(const auto ends, Tokenizer::Load(gguf_ + ".other"));
  EXPECT_NE(ends->Fingerprint(), from_gguf_->Fingerprint());
}

TEST_F(TokenizerTest, ReadsSpecialTokensOnlyWhenAsked) {
  for (const Tokenizer* tokenizer : {from_folder_.get(), from_gguf_.get()}) {
    TR_ASSERT_OK_AND_ASSIGN(const auto parsed,
                            tokenizer->Encode("t<|im_end|>t", {.parse_special = true}));
    EXPECT_THAT(parsed, ElementsAre(Id("t"), tiny_.im_end, Id("t")));
    TR_ASSERT_OK_AND_ASSIGN(const auto literal, tokenizer->Encode("t<|im_end|>t"));
    EXPECT_EQ(literal.size(), 12u);
    EXPECT_THAT(literal, ::testing::Not(::testing::Contains(tiny_.im_end)));
    EXPECT_EQ(tokenizer->Decode(literal), "t<|im_end|>t");
  }
}

TEST_F(TokenizerTest, DecodeSkipsSpecialTokensOnlyWhenAsked) {
  const std::vector<TokenId> ids = {tiny_.im_start, Id("the"), tiny_.tool_call, tiny_.im_end};
  EXPECT_EQ(from_folder_->Decode(ids, /*skip_special=*/true), "the<tool_call>");
  EXPECT_EQ(from_folder_->Decode(ids, /*skip_special=*/false),
            "<|im_start|>the<tool_call><|im_end|>");
  EXPECT_TRUE(from_folder_->IsSpecial(tiny_.im_start));
  EXPECT_FALSE(from_folder_->IsSpecial(tiny_.tool_call));
}

TEST_F(TokenizerTest, IdsWithoutATokenAreEmptyText) {
  const std::vector<TokenId> ids = {-1, Id("t"), from_gguf_->usable_ids(), 1 << 30};
  EXPECT_EQ(from_gguf_->Decode(ids), "t");
  EXPECT_EQ(from_gguf_->TokenBytes(-1), "");
  EXPECT_EQ(from_gguf_->TokenBytes(from_gguf_->usable_ids()), "");
  EXPECT_EQ(from_gguf_->usable_ids() + 1, static_cast<TokenId>(tiny_.tokens.size()))
      << "the unused id at the end is padding";
}

TEST_F(TokenizerTest, DecodeReplacesBytesThatAreNotUtf8) {
  const std::vector<TokenId> ids = {Id("\xE4\xBD"), Id("t"), Id("\xFF"), Id("\xE4\xBD"),
                                    Id("\x9B")};
  EXPECT_EQ(from_folder_->Decode(ids), "\uFFFDt\uFFFD佛");
}

TEST_F(TokenizerTest, EncodeThenDecodeGivesTheComposedText) {
  TR_ASSERT_OK_AND_ASSIGN(const auto ids, from_folder_->Encode("e\u0301 the  \n\tend 佛🙂"));
  EXPECT_EQ(from_folder_->Decode(ids), "\u00e9 the  \n\tend 佛🙂");
}

TEST_F(TokenizerTest, KnowsItsEndTokens) {
  EXPECT_THAT(from_folder_->eos_ids(), ElementsAre(tiny_.im_end, tiny_.end_of_text));
  EXPECT_THAT(from_gguf_->eos_ids(), ElementsAre(tiny_.im_end, tiny_.end_of_text));
  EXPECT_EQ(from_folder_->eos_text(), "<|im_end|>");
  EXPECT_EQ(from_folder_->bos_id(), std::nullopt);
  EXPECT_EQ(from_gguf_->bos_id(), tiny_.end_of_text);
  EXPECT_EQ(from_folder_->chat_template(), tiny_.chat_template);
}

TEST_F(TokenizerTest, RefusesTextThatIsNotUtf8OrTooLong) {
  EXPECT_THAT(from_folder_->Encode("ab\xFF"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not valid UTF-8 (byte 2)")));
  EXPECT_THAT(from_folder_->Encode(std::string(kMaxEncodeBytes + 1, ' ')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit")));
}

TEST_F(TokenizerTest, LoadNamesWhatIsMissingOrUnknown) {
  EXPECT_THAT(Tokenizer::Load(folder_ + "/absent.gguf"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent.gguf")));
  std::filesystem::create_directories(folder_ + "/empty");
  EXPECT_THAT(Tokenizer::Load(folder_ + "/empty"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("tokenizer.json")));
  WriteTinyGguf(tiny_, gguf_ + ".pre", "some-other-pre");
  EXPECT_THAT(Tokenizer::Load(gguf_ + ".pre"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("some-other-pre")));
  WriteTinyGguf(tiny_, gguf_ + ".model", "qwen2", "bert");
  EXPECT_THAT(Tokenizer::Load(gguf_ + ".model"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("bert")));
}

TEST_F(TokenizerTest, LoadRefusesContentsThatDoNotFit) {
  std::filesystem::create_directories(folder_ + "/broken");
  std::ofstream(folder_ + "/broken/tokenizer.json") << "{\"model\":";
  EXPECT_THAT(Tokenizer::Load(folder_ + "/broken"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tokenizer.json")));
  TinyVocabulary unknown_merge = tiny_;
  unknown_merge.merges.push_back("zz yy");
  WriteTinyGguf(unknown_merge, gguf_ + ".merge");
  EXPECT_THAT(Tokenizer::Load(gguf_ + ".merge"), StatusIs(absl::StatusCode::kInvalidArgument));
  TinyVocabulary few_types = tiny_;
  few_types.types.pop_back();
  WriteTinyGguf(few_types, gguf_ + ".types");
  EXPECT_THAT(Tokenizer::Load(gguf_ + ".types"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token types")));
}

TEST_F(TokenizerTest, ThreadsEncodeAndDecodeAtOnce) {
  const std::string text = "the other 佛 the <tool_call> 1234";
  TR_ASSERT_OK_AND_ASSIGN(const auto expected, from_gguf_->Encode(text));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(*from_gguf_->Encode(text), expected);
        EXPECT_EQ(from_gguf_->Decode(expected), text);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tokenrouter
