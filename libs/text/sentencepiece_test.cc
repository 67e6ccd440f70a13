#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "libs/status/status_matchers.h"
#include "libs/text/incremental_detokenizer.h"
#include "libs/text/tiny_vocabulary.h"
#include "libs/text/tokenizer.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;

class SentencePieceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string base = ::testing::TempDir() + "/tiny_sentencepiece";
    WriteTinySentencePieceFolder(tiny_, base);
    WriteTinyGguf(tiny_, base + ".gguf", "default", "llama");
    TR_ASSERT_OK_AND_ASSIGN(from_folder_, Tokenizer::Load(base));
    TR_ASSERT_OK_AND_ASSIGN(from_gguf_, Tokenizer::Load(base + ".gguf"));
  }
  TokenId Piece(const std::string& piece) const {
    const auto at = std::find(tiny_.tokens.begin(), tiny_.tokens.end(), piece);
    return static_cast<TokenId>(at - tiny_.tokens.begin());
  }
  std::string Stream(const std::vector<TokenId>& ids, bool skip_special) const {
    IncrementalDetokenizer detokenizer(*from_gguf_, skip_special);
    std::string text;
    for (const TokenId id : ids) text += detokenizer.Push(id);
    return text + detokenizer.Flush();
  }

  const TinyVocabulary tiny_ = MakeTinySentencePieces();
  std::unique_ptr<Tokenizer> from_folder_;
  std::unique_ptr<Tokenizer> from_gguf_;
};

TEST_F(SentencePieceTest, JoinsByScoreAndSpellsTheRestAsBytes) {
  TR_ASSERT_OK_AND_ASSIGN(const auto ids, from_gguf_->Encode("the other é"));
  EXPECT_THAT(ids, ElementsAre(Piece("\u2581the"), Piece("\u2581"), Piece("o"), Piece("the"),
                               Piece("r"), Piece("\u2581"), Piece("<0xC3>"), Piece("<0xA9>")));
  EXPECT_EQ(from_gguf_->Decode(ids), "the other é");
}

TEST_F(SentencePieceTest, FolderAndGgufOfOneVocabularyAgree) {
  EXPECT_EQ(from_folder_->Fingerprint(), from_gguf_->Fingerprint());
  for (const std::string text : {"", " ", "the", " the  the", "theo\nrhe 佛", "<s>the</s>"}) {
    TR_ASSERT_OK_AND_ASSIGN(const auto a, from_folder_->Encode(text, {.parse_special = true}));
    TR_ASSERT_OK_AND_ASSIGN(const auto b, from_gguf_->Encode(text, {.parse_special = true}));
    EXPECT_EQ(a, b) << text;
    if (text.empty() || text[0] == '<') continue;
    EXPECT_EQ(from_folder_->Decode(a), text);
  }
}

TEST_F(SentencePieceTest, BeginsPlainTextWithTheBeginningTokenWhenAsked) {
  TR_ASSERT_OK_AND_ASSIGN(const auto ids, from_gguf_->Encode("the", {.add_special = true}));
  EXPECT_THAT(ids, ElementsAre(Piece("<s>"), Piece("\u2581the")));
}

TEST_F(SentencePieceTest, DropsOnlyTheSpaceThatWasAdded) {
  const std::vector<TokenId> ids = {Piece("<s>"), Piece("\u2581the"), Piece("\u2581the")};
  EXPECT_EQ(from_gguf_->Decode(ids), "the the");
  EXPECT_EQ(Stream(ids, true), "the the");
  EXPECT_EQ(Stream(ids, false), "<s> the the");
}

TEST_F(SentencePieceTest, DeltasJoinToTheWholeDecodeForRandomIds) {
  const uint32_t seed = 99;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    std::vector<TokenId> ids(random() % 20);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % tiny_.tokens.size());
    ASSERT_EQ(Stream(ids, true), from_gguf_->Decode(ids, true));
    ASSERT_EQ(Stream(ids, false), from_gguf_->Decode(ids, false));
  }
}

}  // namespace
}  // namespace tokenrouter
