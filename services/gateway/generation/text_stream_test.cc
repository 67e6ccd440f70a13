#include "services/gateway/generation/text_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "libs/status/status_matchers.h"
#include "services/gateway/testing/fake_text_model.h"

namespace tokenrouter {
namespace {

constexpr int32_t kPrompt = 5;

LinkEvent Tokens(int32_t base, std::vector<int32_t> ids, Author author = Author::kSmall) {
  LinkEvent event;
  event.base_position = base;
  for (const int32_t id : ids) {
    event.tokens.push_back({.id = id, .author = author, .entropy = 0.5f, .logprob = -1.0f});
  }
  return event;
}

void SetFinish(int32_t position, api::FinishReason reason, LinkEvent* event) {
  event->finish.emplace();
  event->finish->set_position(position);
  event->finish->set_reason(reason);
}

std::vector<int32_t> Bytes(const std::string& text) {
  std::vector<int32_t> ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

std::string Join(const std::vector<TextPiece>& pieces) {
  std::string text;
  for (const TextPiece& piece : pieces) text += piece.text;
  return text;
}

class TextStreamTest : public ::testing::Test {
 protected:
  TextStream Make(std::vector<std::string> stops = {}) {
    return TextStream(kPrompt, *StopMatcher::Create(std::move(stops)), &model_);
  }
  FakeTextModel model_{{"stop", " word"}};
};

TEST_F(TextStreamTest, ADraftIsNotCountedAsWrittenAlone) {
  TextStream stream = Make();
  LinkEvent event = Tokens(5, Bytes("abc"), Author::kLarge);
  event.tokens[0].author = Author::kSmall;
  event.large_alone = true;
  stream.Push(event);
  EXPECT_EQ(stream.usage().large_alone_tokens, 2);
  EXPECT_STREQ(stream.usage().service_mode(), "mixed");
}

TEST_F(TextStreamTest, CountsTokensByAuthor) {
  TextStream stream = Make();
  EXPECT_EQ(Join(stream.Push(Tokens(5, Bytes("ab")))), "ab");
  EXPECT_EQ(Join(stream.Push(Tokens(7, Bytes("c"), Author::kLarge))), "c");
  EXPECT_EQ(stream.usage().small_tokens, 2);
  EXPECT_EQ(stream.usage().large_tokens, 1);
  EXPECT_EQ(stream.position(), 8);
  EXPECT_FALSE(stream.finished());
}

TEST_F(TextStreamTest, HoldsBackHalfACharacterButCountsItsToken) {
  TextStream stream = Make();
  const std::vector<TextPiece> first = stream.Push(Tokens(5, {0xE4}));
  EXPECT_EQ(Join(first), "");
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(stream.usage().completion_tokens(), 1);
  EXPECT_EQ(Join(stream.Push(Tokens(6, {0xBD, 0xA0}))), "\xE4\xBD\xA0");
}

TEST_F(TextStreamTest, TheTextsOfTokensJoinToTheText) {
  TextStream stream = Make({"never"});
  std::string joined;
  for (const TextPiece& piece : stream.Push(Tokens(5, {'n', 0xE4, 0xBD, 0xA0, 'x'}))) {
    joined += piece.tokens.at(0).text;
  }
  EXPECT_EQ(joined, "n\xE4\xBD\xA0x");
}

TEST_F(TextStreamTest, TheStoppingIdIsCountedButNotShown) {
  TextStream stream = Make();
  LinkEvent event = Tokens(5, {'a', FakeTextModel::kWord});
  SetFinish(7, api::FINISH_REASON_STOP, &event);
  EXPECT_EQ(Join(stream.Push(event)), "a");
  EXPECT_EQ(stream.reason(), FinishReason::kStop);
  EXPECT_EQ(stream.usage().completion_tokens(), 2);
  EXPECT_FALSE(stream.ended_by_stop_string());
}

TEST_F(TextStreamTest, TheLastTokenOfALengthLimitIsShown) {
  TextStream stream = Make();
  LinkEvent event = Tokens(5, Bytes("ab"));
  SetFinish(7, api::FINISH_REASON_LENGTH, &event);
  EXPECT_EQ(Join(stream.Push(event)), "ab");
  EXPECT_EQ(stream.reason(), FinishReason::kLength);
}

TEST_F(TextStreamTest, IdsBeyondTheFinishPositionDoNotCount) {
  TextStream stream = Make();
  LinkEvent event = Tokens(5, Bytes("abcd"));
  SetFinish(7, api::FINISH_REASON_LENGTH, &event);
  EXPECT_EQ(Join(stream.Push(event)), "ab");
  EXPECT_EQ(stream.usage().completion_tokens(), 2);
}

TEST_F(TextStreamTest, AStopStringEndsAtTheTokenThatCompletesIt) {
  TextStream stream = Make({"stop"});
  EXPECT_EQ(Join(stream.Push(Tokens(5, Bytes("a st")))), "a ");
  EXPECT_EQ(Join(stream.Push(Tokens(9, Bytes("opxyz")))), "");
  EXPECT_TRUE(stream.finished());
  EXPECT_TRUE(stream.ended_by_stop_string());
  EXPECT_EQ(stream.position(), 11);
  EXPECT_EQ(stream.usage().completion_tokens(), 6);
}

TEST_F(TextStreamTest, AFalseStartOfAStopStringComesOutAtTheEnd) {
  TextStream stream = Make({"stop"});
  EXPECT_EQ(Join(stream.Push(Tokens(5, Bytes("sto")))), "");
  LinkEvent event = Tokens(8, {});
  SetFinish(8, api::FINISH_REASON_LENGTH, &event);
  EXPECT_EQ(Join(stream.Push(event)), "sto");
}

TEST_F(TextStreamTest, AnUnfinishedCharacterIsReplacedAtTheEnd) {
  TextStream stream = Make();
  LinkEvent event = Tokens(5, {'a', 0xE4});
  SetFinish(7, api::FINISH_REASON_LENGTH, &event);
  EXPECT_EQ(Join(stream.Push(event)), "a\xEF\xBF\xBD");
}

TEST_F(TextStreamTest, DegradedStaysDegraded) {
  TextStream stream = Make();
  LinkEvent event = Tokens(5, Bytes("a"));
  event.degraded = true;
  stream.Push(event);
  stream.Push(Tokens(6, Bytes("b")));
  EXPECT_TRUE(stream.usage().degraded);
}

// The same tokens in any cut give the same text, counts and finish.
TEST_F(TextStreamTest, TheCutIntoEventsChangesNothing) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<int32_t> ids;
    for (int i = 0; i < 40; ++i) {
      const int kind = static_cast<int>(random() % 4);
      ids.push_back(kind == 0   ? static_cast<int32_t>(random() % 256)
                    : kind == 1 ? FakeTextModel::kWord + static_cast<int32_t>(random() % 2)
                                : "stopa"[random() % 5]);
    }
    TextStream whole = Make({"stop", "aa"});
    LinkEvent all = Tokens(kPrompt, ids);
    SetFinish(kPrompt + 40, api::FINISH_REASON_LENGTH, &all);
    const std::string expected = Join(whole.Push(all));

    TextStream cut = Make({"stop", "aa"});
    std::string text;
    for (size_t begin = 0; begin < ids.size() && !cut.finished();) {
      const size_t end = std::min(ids.size(), begin + 1 + random() % 5);
      LinkEvent event =
          Tokens(kPrompt + static_cast<int32_t>(begin),
                 {ids.begin() + static_cast<int>(begin), ids.begin() + static_cast<int>(end)});
      if (end == ids.size()) SetFinish(kPrompt + 40, api::FINISH_REASON_LENGTH, &event);
      text += Join(cut.Push(event));
      begin = end;
    }
    ASSERT_EQ(text, expected) << "round " << round;
    ASSERT_EQ(cut.position(), whole.position());
    ASSERT_EQ(cut.reason(), whole.reason());
  }
}

}  // namespace
}  // namespace tokenrouter
