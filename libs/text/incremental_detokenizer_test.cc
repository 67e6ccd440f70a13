#include "libs/text/incremental_detokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "libs/status/status_matchers.h"
#include "libs/text/tiny_vocabulary.h"
#include "libs/text/utf8_repair.h"

namespace tokenrouter {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

bool IsWholeUtf8(const std::string& text) {
  std::string copy;
  return AppendRepairedUtf8(text, /*is_end=*/false, copy) == text.size() && copy == text;
}

class IncrementalDetokenizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = ::testing::TempDir() + "/tiny_detokenizer.gguf";
    WriteTinyGguf(tiny_, path);
    TR_ASSERT_OK_AND_ASSIGN(tokenizer_, Tokenizer::Load(path));
  }
  // The joined deltas; checks each of them on the way.
  std::string Stream(const std::vector<TokenId>& ids, bool skip_special) {
    IncrementalDetokenizer detokenizer(*tokenizer_, skip_special);
    std::string text;
    for (const TokenId id : ids) {
      const std::string delta = detokenizer.Push(id);
      EXPECT_TRUE(IsWholeUtf8(delta));
      EXPECT_LE(detokenizer.held_bytes(), kMaxIncompleteUtf8Bytes);
      text += delta;
    }
    return text + detokenizer.Flush();
  }
  std::vector<TokenId> Bytes(std::string_view bytes) {
    std::vector<TokenId> ids;  // The first 256 ids are the bytes.
    for (const char byte : bytes) ids.push_back(static_cast<uint8_t>(byte));
    return ids;
  }

  const TinyVocabulary tiny_ = MakeTinyVocabulary();
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(IncrementalDetokenizerTest, HoldsACharacterUntilItIsComplete) {
  IncrementalDetokenizer detokenizer(*tokenizer_);
  EXPECT_EQ(detokenizer.Push(0xF0), "");
  EXPECT_EQ(detokenizer.Push(0x9F), "");
  EXPECT_EQ(detokenizer.Push(0x99), "");
  EXPECT_EQ(detokenizer.Push(0x82), "🙂");
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST_F(IncrementalDetokenizerTest, GivesOutWhatABrokenCharacterHeldBack) {
  IncrementalDetokenizer detokenizer(*tokenizer_);
  EXPECT_EQ(detokenizer.Push(0xE4), "");
  EXPECT_EQ(detokenizer.Push('a'), "\uFFFDa");
  EXPECT_EQ(detokenizer.Push(0xFF), kReplacement);
  EXPECT_EQ(detokenizer.Push(0xE4), "");
  EXPECT_EQ(detokenizer.Flush(), kReplacement);
}

TEST_F(IncrementalDetokenizerTest, ASkippedSpecialTokenDoesNotBreakACharacter) {
  const std::vector<TokenId> ids = {0xE4, 0xBD, tiny_.im_end, 0x9B};
  EXPECT_EQ(Stream(ids, true), "佛");
  EXPECT_EQ(Stream(ids, true), tokenizer_->Decode(ids, true));
  EXPECT_EQ(Stream(ids, false), "\uFFFD<|im_end|>\uFFFD");
}

TEST_F(IncrementalDetokenizerTest, KeepsEverySpace) {
  const std::string text = " a  the   the \n  b ";
  TR_ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer_->Encode(text));
  EXPECT_EQ(Stream(ids, true), text);
}

TEST_F(IncrementalDetokenizerTest, DeltasJoinToTheWholeDecodeForRandomIds) {
  const uint32_t seed = 20240611;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    std::vector<TokenId> ids;
    for (uint32_t i = 0, n = random() % 40; i < n; ++i) {
      // Half of the ids continue or begin characters of several bytes.
      ids.push_back(random() % 2 == 0 ? static_cast<TokenId>(0x80 + random() % 0x80)
                                      : static_cast<TokenId>(random() % 270) - 2);
    }
    for (const bool skip : {true, false}) {
      ASSERT_EQ(Stream(ids, skip), tokenizer_->Decode(ids, skip)) << "round " << round;
    }
  }
}

TEST_F(IncrementalDetokenizerTest, DeltasJoinToTheTextByteByByte) {
  std::vector<std::string> texts = {"日本語", "👩‍👩‍👧", "العربية"};
  texts.insert(texts.end(), {"हिन्दी", "e\u0301\u0302\u0323 marks"});
  texts.push_back("\u00a0\u2003space\u200b");
  texts.push_back(std::string("a\0b", 3));
  for (const std::string& text : texts) {
    EXPECT_EQ(Stream(Bytes(text), true), text);
  }
}

TEST(Utf8RepairTest, ReplacesEachBrokenBeginningOnce) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\x80", "\uFFFD"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},                      // Overlong.
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // Surrogate.
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // Above U+10FFFF.
      {"\xF0\x9F\x99z", "\uFFFDz"},
      {"\xE0\x80", "\uFFFD\uFFFD"},
      {"\xF0\x9F", "\uFFFD"},
      {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
  };
  for (const auto& [bytes, expected] : cases) {
    std::string out;
    EXPECT_EQ(AppendRepairedUtf8(bytes, /*is_end=*/true, out), bytes.size());
    EXPECT_EQ(out, expected);
  }
}

}  // namespace
}  // namespace tokenrouter
