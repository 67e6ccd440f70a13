// Requests with n > 1 over HTTP, against a scripted scheduler.
#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "libs/telemetry/metrics.h"
#include "services/gateway/errors/api_error.h"
#include "services/gateway/testing/openai_http_fixture.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = HttpStep::Kind;

class OpenAiChoicesTest : public OpenAiHttpFixture {
 protected:
  OpenAiChoicesTest() : OpenAiHttpFixture(/*max_requests=*/8) {}

  void Text(size_t choice, const std::string& text, Author author = Author::kSmall) {
    port_.to = choice;
    port_.SendText(text, author);
  }
  void Finish(size_t choice, api::FinishReason reason) {
    port_.to = choice;
    port_.SendFinish(reason);
  }
  void Fail(size_t choice, absl::Status error) {
    port_.to = choice;
    port_.SendError(std::move(error));
  }
  // The events of one choice in what was streamed, parsed.
  static std::vector<json::value> EventsOf(int choice, const std::string& bytes) {
    std::vector<json::value> events;
    for (const std::string& data : Data(bytes)) {
      if (data == "[DONE]") continue;
      json::value event = json::parse(data);
      const json::array& choices = event.at("choices").as_array();
      if (!choices.empty() && choices[0].at("index") == choice) events.push_back(choices[0]);
    }
    return events;
  }
};

TEST_F(OpenAiChoicesTest, EveryChoiceIsTheSameRequestUnderAnotherIndexAndAllStartAtOnce) {
  const auto call = Chat(R"(,"n":3,"seed":9,"temperature":0)");
  ASSERT_EQ(port_.submitted.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    wire::GenerationSpec spec = port_.submitted[i].spec;
    EXPECT_EQ(spec.choice(), i);
    EXPECT_EQ(port_.submitted[i].ids, port_.submitted[0].ids);
    spec.set_choice(0);
    EXPECT_EQ(spec.SerializeAsString(), port_.submitted[0].spec.SerializeAsString());
  }
}

TEST_F(OpenAiChoicesTest, AWholeReplyHasAllChoicesAndCountsThePromptOnce) {
  const auto call = Chat(R"(,"n":2,"logprobs":true)");
  port_.cached_tokens = 2;
  Text(1, "xyz", Author::kLarge);
  Finish(1, api::FINISH_REASON_LENGTH);
  EXPECT_EQ(call->Next().kind, Kind::kWait) << "choice 0 has not ended";
  port_.cached_tokens = 1;
  Text(0, "a");
  EXPECT_EQ(call->Next().kind, Kind::kWait);
  EXPECT_EQ(port_.submitted[0].acknowledged, port_.submitted[0].committed);
  Finish(0, api::FINISH_REASON_STOP);
  const HttpStep reply = call->Next();
  ASSERT_EQ(reply.kind, Kind::kReply);
  const json::value body = json::parse(reply.bytes);
  ASSERT_EQ(body.at("choices").as_array().size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const json::value& choice = body.at("choices").at(i);
    EXPECT_EQ(choice.at("index"), i);
    EXPECT_EQ(choice.at("message").at("content"), i == 0 ? "a" : "xyz");
    EXPECT_EQ(choice.at("finish_reason"), i == 0 ? "stop" : "length");
    EXPECT_EQ(choice.at("logprobs").at("content").as_array().size(), i == 0 ? 1u : 3u);
  }
  const json::value& usage = body.at("usage");
  EXPECT_EQ(usage.at("prompt_tokens"), port_.submitted[0].spec.prompt_length());
  EXPECT_EQ(usage.at("completion_tokens"), 4);
  EXPECT_EQ(usage.at("prompt_tokens_details").at("cached_tokens"), 1)
      << "tokens that no choice had to compute";
  EXPECT_EQ(usage.at("routing").at("large_tokens"), 3);
  EXPECT_THAT(ExposeText(registry_),
              HasSubstr(absl::StrCat("tokenrouter_gateway_prompt_tokens_total ",
                                     port_.submitted[0].spec.prompt_length())));
}

TEST_F(OpenAiChoicesTest, AStreamMarksEventsWithTheChoiceAndEndsAfterTheLast) {
  const auto call = Chat(R"(,"n":2,"stream":true,"stream_options":{"include_usage":true})");
  Text(1, "x");
  Text(0, "ab");
  EXPECT_EQ(Take(call.get()).kind, Kind::kStreamHead);
  std::string bytes = Take(call.get()).bytes;
  ASSERT_EQ(EventsOf(0, bytes).size(), 2u);
  ASSERT_EQ(EventsOf(1, bytes).size(), 1u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(EventsOf(i, bytes)[0].at("delta").at("role"), "assistant") << i;
    EXPECT_EQ(port_.submitted[i].acknowledged, port_.submitted[i].committed) << i;
  }
  Finish(0, api::FINISH_REASON_LENGTH);
  bytes = Take(call.get()).bytes;
  ASSERT_EQ(EventsOf(0, bytes).size(), 1u);
  EXPECT_EQ(EventsOf(0, bytes)[0].at("finish_reason"), "length");
  EXPECT_THAT(bytes, Not(HasSubstr("[DONE]")));
  EXPECT_EQ(call->Next().kind, Kind::kWait);
  Finish(1, api::FINISH_REASON_STOP);
  const std::vector<std::string> end = Data(Take(call.get()).bytes);
  ASSERT_EQ(end.size(), 3u);
  EXPECT_EQ(json::parse(end[0]).at("choices").at(0).at("index"), 1);
  EXPECT_EQ(json::parse(end[1]).at("usage").at("completion_tokens"), 3);
  EXPECT_EQ(end[2], "[DONE]");
  EXPECT_EQ(call->Next().kind, Kind::kStreamEnd);
}

TEST_F(OpenAiChoicesTest, CompletionsHaveChoicesToo) {
  const auto call =
      Start("POST", "/v1/completions", R"({"model":"tokenrouter","prompt":"p","n":2})");
  for (size_t i = 0; i < 2; ++i) {
    Text(i, i == 0 ? "a" : "b");
    Finish(i, api::FINISH_REASON_LENGTH);
  }
  const json::value body = json::parse(call->Next().bytes);
  EXPECT_EQ(body.at("choices").at(0).at("text"), "a");
  EXPECT_EQ(body.at("choices").at(1).at("text"), "b");
}

TEST_F(OpenAiChoicesTest, AStopStringEndsItsOwnChoiceOnly) {
  const auto call = Chat(R"(,"n":2,"stop":"!")");
  Text(0, "a!b");
  EXPECT_EQ(call->Next().kind, Kind::kWait);
  EXPECT_TRUE(port_.submitted[0].finish.has_value());
  EXPECT_FALSE(port_.submitted[1].finish.has_value());
  Text(1, "cd");
  Finish(1, api::FINISH_REASON_LENGTH);
  const json::value body = json::parse(call->Next().bytes);
  EXPECT_EQ(body.at("choices").at(0).at("message").at("content"), "a");
  EXPECT_EQ(body.at("choices").at(1).at("message").at("content"), "cd");
  EXPECT_FALSE(port_.submitted[0].cancelled || port_.submitted[1].cancelled);
}

TEST_F(OpenAiChoicesTest, TheFailureOfOneChoiceIsTheReplyAndCancelsTheOthers) {
  const auto call = Chat(R"(,"n":3)");
  Text(0, "a");
  Finish(0, api::FINISH_REASON_LENGTH);
  Fail(1, WithCode(absl::ResourceExhaustedError("full"), "queue_full"));
  const HttpStep reply = call->Next();
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(json::parse(reply.bytes).at("error").at("code"), "queue_full");
  EXPECT_FALSE(port_.submitted[0].cancelled) << "a choice that has ended is not cancelled";
  EXPECT_TRUE(port_.submitted[2].cancelled);
}

TEST_F(OpenAiChoicesTest, ARefusedChoiceIsNoStream) {
  const auto call = Chat(R"(,"n":2,"stream":true)");
  Fail(1, absl::ResourceExhaustedError("full"));
  EXPECT_EQ(call->Next().status, 429);
  EXPECT_TRUE(port_.submitted[0].cancelled);
}

TEST_F(OpenAiChoicesTest, AFailureWithinAStreamIsAnEventAndACut) {
  const auto call = Chat(R"(,"n":3,"stream":true)");
  Text(0, "a");
  Take(call.get());
  Take(call.get());
  Finish(2, api::FINISH_REASON_STOP);
  Fail(1, absl::UnavailableError("lost"));
  const HttpStep step = Take(call.get());
  EXPECT_EQ(Data(step.bytes).size(), 2u) << "the end of choice 2, and the error";
  EXPECT_THAT(step.bytes, HasSubstr(R"(data: {"error":{"message":"lost")"));
  EXPECT_THAT(step.bytes, Not(HasSubstr("[DONE]")));
  EXPECT_TRUE(call->Next().close);
  EXPECT_TRUE(port_.submitted[0].cancelled);
}

TEST_F(OpenAiChoicesTest, AClientThatLeavesCancelsEveryChoiceThatHasNotEnded) {
  auto call = Chat(R"(,"n":3)");
  Finish(1, api::FINISH_REASON_STOP);
  call->Next();
  call.reset();
  EXPECT_TRUE(port_.submitted[0].cancelled && port_.submitted[2].cancelled);
  EXPECT_FALSE(port_.submitted[1].cancelled);
}

TEST_F(OpenAiChoicesTest, AllStartOrNone) {
  port_.most = 2;
  EXPECT_EQ(Chat(R"(,"n":3)")->Next().status, 503);
  ASSERT_EQ(port_.submitted.size(), 2u);
  EXPECT_TRUE(port_.submitted[0].cancelled && port_.submitted[1].cancelled);
}

TEST_F(OpenAiChoicesTest, EveryChoiceCountsTowardsTheLimitOfTheGateway) {
  const auto never = Chat(R"(,"n":9)")->Next();
  EXPECT_EQ(never.status, 400);
  EXPECT_EQ(json::parse(never.bytes).at("error").at("param"), "n");
  const auto five = Chat(R"(,"n":5)");
  const HttpStep later = Chat(R"(,"n":4)")->Next();
  EXPECT_EQ(later.status, 429);
  EXPECT_THAT(later.bytes,
              HasSubstr("at most 8 choices of requests at once; there is capacity for 3"));
  EXPECT_EQ(Chat(R"(,"n":3)")->Next().kind, Kind::kWait);
  EXPECT_THAT(ExposeText(registry_), HasSubstr("tokenrouter_gateway_requests_in_flight 5"));
}

}  // namespace
}  // namespace tokenrouter
