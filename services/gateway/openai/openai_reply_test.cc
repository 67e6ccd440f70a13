#include "services/gateway/openai/openai_reply.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <limits>

namespace tokenrouter {
namespace {

namespace json = boost::json;

ReplyHeader Header(OpenAiEndpoint endpoint) {
  ReplyHeader header;
  header.endpoint = endpoint;
  header.id = "chatcmpl-1";
  header.model = "pair";
  header.created = 7;
  return header;
}

std::vector<TokenInfo> TwoTokens() {
  return {{{5, Author::kSmall, 0.25f, -0.5f}, "he", "he"},
          {{6, Author::kLarge, 1.5f, -1.0f}, "\xFF", ""}};
}

TEST(OpenAiReplyTest, FirstChatDeltaCarriesTheRole) {
  const json::value event =
      json::parse(DeltaEvent(Header(OpenAiEndpoint::kChat), 0, "he", {}, /*first=*/true));
  EXPECT_EQ(event.at("object"), "chat.completion.chunk");
  const json::value& choice = event.at("choices").at(0);
  EXPECT_EQ(choice.at("delta").at("role"), "assistant");
  EXPECT_EQ(choice.at("delta").at("content"), "he");
  EXPECT_TRUE(choice.at("finish_reason").is_null());
  EXPECT_FALSE(event.as_object().contains("usage"));
}

TEST(OpenAiReplyTest, FinishEventHasAnEmptyDelta) {
  ReplyHeader header = Header(OpenAiEndpoint::kChat);
  header.include_usage = true;
  const json::value event =
      json::parse(FinishEvent(header, 3, FinishReason::kLength, /*first=*/false));
  EXPECT_EQ(event.at("choices").at(0).at("finish_reason"), "length");
  EXPECT_EQ(event.at("choices").at(0).at("index"), 3);
  EXPECT_TRUE(event.at("choices").at(0).at("delta").as_object().empty());
  EXPECT_TRUE(event.at("usage").is_null());
}

TEST(OpenAiReplyTest, UsageCountsAuthors) {
  const json::value event = json::parse(
      UsageEvent(Header(OpenAiEndpoint::kChat),
                 {.prompt_tokens = 10, .small_tokens = 3, .large_tokens = 2, .degraded = true}));
  EXPECT_TRUE(event.at("choices").as_array().empty());
  EXPECT_EQ(event.at("usage").at("total_tokens"), 15);
  EXPECT_EQ(event.at("usage").at("routing").at("large_tokens"), 2);
  EXPECT_EQ(event.at("usage").at("routing").at("degraded"), true);
}

TEST(OpenAiReplyTest, UsageSaysHowTheRequestWasServed) {
  const auto mode = [](UsageCounts usage) {
    const json::value event = json::parse(UsageEvent(Header(OpenAiEndpoint::kChat), usage));
    return std::string(event.at("usage").at("routing").at("service_mode").as_string());
  };
  EXPECT_EQ(mode({}), "routed");
  EXPECT_EQ(mode({.small_tokens = 3, .large_tokens = 2}), "routed");
  EXPECT_EQ(mode({.large_tokens = 2, .large_alone_tokens = 2}), "large_alone");
  EXPECT_EQ(mode({.large_tokens = 3, .large_alone_tokens = 2}), "mixed");
}

TEST(OpenAiReplyTest, WholeChatReplyShowsRoutingAndLogprobs) {
  ReplyHeader header = Header(OpenAiEndpoint::kChat);
  header.logprobs = header.return_routing = true;
  const ChoiceReply reply{"he", TwoTokens(), FinishReason::kStop};
  const json::value body = json::parse(WholeReply(header, {{reply}}, {1, 1, 1, false}));
  const json::value& choice = body.at("choices").at(0);
  EXPECT_EQ(choice.at("message").at("content"), "he");
  EXPECT_EQ(choice.at("routing").at("tokens").at(1).at("author"), "large");
  EXPECT_EQ(choice.at("logprobs").at("content").at(1).at("bytes").at(0), 255);
}

TEST(OpenAiReplyTest, EveryChoiceHasItsOwnTextReasonAndTokens) {
  for (const OpenAiEndpoint endpoint : {OpenAiEndpoint::kChat, OpenAiEndpoint::kCompletions}) {
    ReplyHeader header = Header(endpoint);
    header.logprobs = true;
    const std::vector<ChoiceReply> replies = {{"a", TwoTokens(), FinishReason::kStop},
                                              {"b", {}, FinishReason::kLength}};
    const json::value body = json::parse(WholeReply(header, replies, {}));
    const json::array& choices = body.at("choices").as_array();
    ASSERT_EQ(choices.size(), 2u);
    for (size_t i = 0; i < choices.size(); ++i) {
      const json::object& choice = choices[i].as_object();
      EXPECT_EQ(choice.at("index"), i);
      const json::value& text = endpoint == OpenAiEndpoint::kChat
                                    ? choice.at("message").at("content")
                                    : choice.at("text");
      EXPECT_EQ(text.as_string(), replies[i].text);
      EXPECT_EQ(choice.at("finish_reason").as_string(), FinishReasonName(replies[i].reason));
      EXPECT_EQ(choice.at("logprobs").is_null(), replies[i].tokens.empty());
    }
  }
}

TEST(OpenAiReplyTest, BrokenBytesAndInfinitiesStillMakeValidJson) {
  ReplyHeader header = Header(OpenAiEndpoint::kCompletions);
  header.logprobs = header.return_routing = true;
  std::vector<TokenInfo> tokens = TwoTokens();
  tokens[0].record.logprob = -std::numeric_limits<float>::infinity();
  tokens[0].record.entropy = std::numeric_limits<float>::quiet_NaN();
  const json::value body = json::parse(DeltaEvent(header, 0, "\xE4\xBD", tokens, true));
  EXPECT_EQ(body.at("object"), "text_completion");
  EXPECT_EQ(body.at("choices").at(0).at("text"), "\xEF\xBF\xBD");
}

TEST(OpenAiReplyTest, ErrorJsonIsNested) {
  const std::string json = ErrorJson(ToApiError(WithNumber(
      InvalidField("prompt", "too long", "context_length_exceeded"), "prompt_tokens", 9)));
  EXPECT_EQ(json,
            R"({"error":{"message":"too long","type":"invalid_request_error","param":"prompt",)"
            R"("code":"context_length_exceeded","prompt_tokens":9}})");
}

}  // namespace
}  // namespace tokenrouter
