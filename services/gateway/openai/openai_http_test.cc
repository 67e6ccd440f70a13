#include "services/gateway/openai/openai_http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "absl/strings/str_cat.h"
#include "libs/telemetry/metrics.h"
#include "services/gateway/errors/api_error.h"
#include "services/gateway/testing/openai_http_fixture.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = HttpStep::Kind;

class OpenAiHttpTest : public OpenAiHttpFixture {};

TEST_F(OpenAiHttpTest, AnswersAWholeChat) {
  const auto call = Chat(R"(,"return_routing":true)");
  EXPECT_EQ(call->Next().kind, Kind::kWait);
  port_.SendText("ab");
  port_.SendText("c", Author::kLarge);
  EXPECT_EQ(wakes_, 1) << "events that were not polled yet cause one wake";
  EXPECT_EQ(call->Next().kind, Kind::kWait);
  EXPECT_EQ(port_.submitted[0].acknowledged, port_.submitted[0].committed);
  port_.SendFinish(api::FINISH_REASON_STOP, {FakeTextModel::kEos});
  const HttpStep reply = call->Next();
  ASSERT_EQ(reply.kind, Kind::kReply);
  EXPECT_EQ(reply.status, 200);
  const json::value body = json::parse(reply.bytes);
  EXPECT_EQ(body.at("choices").at(0).at("message").at("content"), "abc");
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "stop");
  EXPECT_EQ(body.at("choices").at(0).at("routing").at("tokens").as_array().size(), 4u);
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 4);
  EXPECT_EQ(body.at("usage").at("routing").at("large_tokens"), 1);
  EXPECT_EQ(Header(reply, "X-Request-Id").size(), 32u);
}

TEST_F(OpenAiHttpTest, StreamsOneEventPerTokenAndEndsWithDone) {
  const auto call = Chat(R"(,"stream":true,"stream_options":{"include_usage":true})");
  EXPECT_EQ(call->Next().kind, Kind::kWait) << "the status waits for the first token";
  port_.SendText("ab");
  EXPECT_EQ(Take(call.get()).kind, Kind::kStreamHead);
  EXPECT_EQ(port_.submitted[0].acknowledged, 0) << "the client has no token yet";
  const std::vector<std::string> data = Data(Take(call.get()).bytes);
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(json::parse(data[0]).at("choices").at(0).at("delta").at("role"), "assistant");
  EXPECT_EQ(port_.submitted[0].acknowledged, port_.submitted[0].committed);
  EXPECT_EQ(call->Next().kind, Kind::kWait);
  port_.SendFinish(api::FINISH_REASON_LENGTH);
  const std::vector<std::string> end = Data(Take(call.get()).bytes);
  ASSERT_EQ(end.size(), 3u);
  EXPECT_EQ(json::parse(end[0]).at("choices").at(0).at("finish_reason"), "length");
  EXPECT_EQ(json::parse(end[1]).at("usage").at("completion_tokens"), 2);
  EXPECT_EQ(end[2], "[DONE]");
  EXPECT_EQ(call->Next().kind, Kind::kStreamEnd);
}

TEST_F(OpenAiHttpTest, AStreamAcknowledgesTokensThatAStopStringHoldsBack) {
  const auto call = Chat(absl::StrCat(R"(,"stream":true,"stop":")", std::string(60, 'a'), R"(")"));
  port_.SendText(std::string(16, 'a'));
  EXPECT_EQ(call->Next().kind, Kind::kWait);
  EXPECT_EQ(port_.submitted[0].acknowledged, port_.submitted[0].committed);
  port_.SendText("b");
  EXPECT_EQ(Take(call.get()).kind, Kind::kStreamHead);
  EXPECT_LT(port_.submitted[0].acknowledged, port_.submitted[0].committed);
  EXPECT_EQ(Take(call.get()).kind, Kind::kStreamData);
  port_.SendText(std::string(16, 'a'));
  EXPECT_EQ(call->Next().kind, Kind::kWait);
  EXPECT_EQ(port_.submitted[0].acknowledged, port_.submitted[0].committed);
}

TEST_F(OpenAiHttpTest, AStreamAcknowledgesTokensWithoutText) {
  const auto call = Chat(R"(,"stream":true,"ignore_eos":true)");
  port_.SendIds(std::vector<int32_t>(64, FakeTextModel::kEos));
  EXPECT_EQ(call->Next().kind, Kind::kWait);
  EXPECT_EQ(port_.submitted[0].acknowledged, port_.submitted[0].committed);
}

TEST_F(OpenAiHttpTest, ARefusalOfTheSchedulerComesBeforeAnyByte) {
  const auto call = Chat(R"(,"stream":true)");
  port_.SendError(WithRetryAfter(WithCode(absl::ResourceExhaustedError("full"), "queue_full"),
                                 absl::Milliseconds(1200)));
  const HttpStep reply = call->Next();
  EXPECT_EQ(reply.kind, Kind::kReply);
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(Header(reply, "Retry-After"), "2");
  EXPECT_EQ(json::parse(reply.bytes).at("error").at("code"), "queue_full");
}

TEST_F(OpenAiHttpTest, AnErrorAfterTheFirstByteIsAnEventAndACut) {
  const auto call = Chat(R"(,"stream":true)");
  port_.SendText("a");
  Take(call.get());
  Take(call.get());
  port_.SendError(absl::UnavailableError("lost"));
  const HttpStep step = Take(call.get());
  EXPECT_THAT(step.bytes, HasSubstr(R"(data: {"error":{"message":"lost")"));
  EXPECT_THAT(step.bytes, Not(HasSubstr("[DONE]")));
  const HttpStep end = call->Next();
  EXPECT_EQ(end.kind, Kind::kStreamEnd);
  EXPECT_TRUE(end.close);
}

TEST_F(OpenAiHttpTest, AStopStringFinishesAtTheScheduler) {
  const auto call = Chat(R"(,"stop":"!")");
  port_.SendText("ab!cd");
  const HttpStep reply = call->Next();
  ASSERT_EQ(reply.kind, Kind::kReply);
  EXPECT_EQ(json::parse(reply.bytes).at("choices").at(0).at("message").at("content"), "ab");
  EXPECT_EQ(json::parse(reply.bytes).at("usage").at("completion_tokens"), 3);
  ASSERT_TRUE(port_.submitted[0].finish.has_value());
  EXPECT_EQ(port_.submitted[0].finish->position(), port_.submitted[0].spec.prompt_length() + 3);
  EXPECT_FALSE(port_.submitted[0].cancelled);
}

TEST_F(OpenAiHttpTest, DroppingTheCallCancels) {
  Chat().reset();
  EXPECT_TRUE(port_.submitted[0].cancelled);
  EXPECT_THAT(ExposeText(registry_), HasSubstr("code=\"499\""));
}

TEST_F(OpenAiHttpTest, DegradedIsMarked) {
  const auto call = Chat();
  port_.SendText("a", Author::kSmall, /*degraded=*/true);
  port_.SendFinish(api::FINISH_REASON_LENGTH);
  const HttpStep reply = call->Next();
  EXPECT_EQ(Header(reply, "X-TokenRouter-Degraded"), "true");
  EXPECT_EQ(json::parse(reply.bytes).at("usage").at("routing").at("degraded"), true);
}

TEST_F(OpenAiHttpTest, SaysHowMuchOfThePromptWasCachedAndNoMoreThanAll) {
  const auto cached = [this](int32_t tokens) {
    const auto call = Chat();
    port_.cached_tokens = tokens;
    port_.SendText("ab");
    port_.cached_tokens = 0;
    port_.SendText("c");
    port_.SendFinish(api::FINISH_REASON_LENGTH);
    return json::parse(call->Next().bytes).at("usage");
  };
  EXPECT_EQ(cached(0).at("prompt_tokens_details").at("cached_tokens"), 0);
  EXPECT_EQ(cached(2).at("prompt_tokens_details").at("cached_tokens"), 2);
  const json::value usage = cached(1 << 20);
  EXPECT_EQ(usage.at("prompt_tokens_details").at("cached_tokens"), usage.at("prompt_tokens"));
}

TEST_F(OpenAiHttpTest, SaysHowTheRequestWasServed) {
  const auto call = Chat(R"(,"routing":{"ttft_slo_ms":70})");
  EXPECT_EQ(port_.submitted[0].spec.ttft_slo_ms(), 70);
  port_.large_alone = true;
  port_.SendText("ab", Author::kLarge);
  port_.large_alone = false;
  port_.SendText("c");
  port_.SendFinish(api::FINISH_REASON_LENGTH);
  const HttpStep reply = call->Next();
  EXPECT_EQ(Header(reply, "X-TokenRouter-Service-Mode"), "mixed");
  EXPECT_EQ(json::parse(reply.bytes).at("usage").at("routing").at("service_mode"), "mixed");
  EXPECT_THAT(ExposeText(registry_),
              HasSubstr("tokenrouter_gateway_served_tokens_total{mode=\"large_alone\"} 2"));
}

TEST_F(OpenAiHttpTest, AStreamSaysHowItIsServedOnlyWhereThatIsSure) {
  const auto asked = Chat(R"(,"stream":true,"routing":{"service_mode":"routed"})");
  EXPECT_EQ(port_.submitted[0].spec.service_mode(), api::SERVICE_MODE_ROUTED);
  port_.SendText("a");
  EXPECT_EQ(Header(Take(asked.get()), "X-TokenRouter-Service-Mode"), "routed");
  const auto open = Chat(R"(,"stream":true)");
  port_.SendText("a");
  EXPECT_EQ(Header(Take(open.get()), "X-TokenRouter-Service-Mode"), "");
}

TEST_F(OpenAiHttpTest, RefusesBeyondItsLimitAndWhileDraining) {
  const auto first = Chat();
  const auto second = Chat();
  EXPECT_EQ(Chat()->Next().status, 429);
  http_.BeginDrain();
  EXPECT_EQ(Chat()->Next().status, 503);
  EXPECT_EQ(Start("GET", "/health")->Next().status, 503);
}

TEST_F(OpenAiHttpTest, HealthNeedsALinkAndASmallWorker) {
  EXPECT_EQ(Start("GET", "/health")->Next().status, 200);
  port_.health.pair.set_small_workers(0);
  EXPECT_THAT(Start("GET", "/health")->Next().bytes, HasSubstr("no_small_worker"));
  port_.health.up = false;
  port_.health.trouble = "why";
  const HttpStep step = Start("GET", "/health")->Next();
  EXPECT_EQ(step.status, 503);
  EXPECT_THAT(step.bytes, HasSubstr("why"));
}

TEST_F(OpenAiHttpTest, EchoesAValidRequestIdAndRefusesAnother) {
  const HttpStep good = Start("GET", "/version", "", {{"x-request-id", "abc-1"}})->Next();
  EXPECT_EQ(Header(good, "X-Request-Id"), "abc-1");
  const HttpStep bad = Start("GET", "/version", "", {{"x-request-id", "a b"}})->Next();
  EXPECT_EQ(bad.status, 400);
}

TEST_F(OpenAiHttpTest, ListsModelsAndSaysWhatItDoesNotKnow) {
  const json::value models = json::parse(Start("GET", "/v1/models")->Next().bytes);
  EXPECT_EQ(models.at("data").at(0).at("id"), "tokenrouter");
  EXPECT_EQ(models.at("data").at(0).at("max_model_len"), 100);
  EXPECT_EQ(Start("GET", "/v1/models/tokenrouter")->Next().status, 200);
  EXPECT_EQ(Start("GET", "/v1/models/none")->Next().status, 404);
  EXPECT_EQ(Start("GET", "/nowhere")->Next().status, 404);
  EXPECT_EQ(Start("GET", "/v1/completions")->Next().status, 405);
  EXPECT_EQ(Start("POST", "/health")->Next().status, 405);
}

TEST_F(OpenAiHttpTest, TokenizesAndBack) {
  const json::value tokens =
      json::parse(Start("POST", "/tokenize", R"({"prompt":"ab"})")->Next().bytes);
  EXPECT_EQ(tokens.at("count"), 2);
  const json::value text =
      json::parse(Start("POST", "/detokenize", R"({"tokens":[97,98]})")->Next().bytes);
  EXPECT_EQ(text.at("prompt"), "ab");
}

TEST_F(OpenAiHttpTest, RefusesIdsThatTheTokenizerDoesNotHave) {
  const HttpStep reply = Start("POST", "/detokenize", R"({"tokens":[97,99999999]})")->Next();
  ASSERT_EQ(reply.status, 400);
  EXPECT_THAT(reply.bytes, HasSubstr("tokens has the token id 99999999; allowed: [0, "));
}

TEST_F(OpenAiHttpTest, RefusesToDetokenizeWithoutBound) {
  const auto body = [](int ids) {
    std::string text = R"({"tokens":[97)";
    for (int i = 1; i < ids; ++i) text += ",97";
    return text + "]}";
  };
  EXPECT_EQ(Start("POST", "/detokenize", body(64 << 10))->Next().status, 200);
  const HttpStep reply = Start("POST", "/detokenize", body((64 << 10) + 1))->Next();
  ASSERT_EQ(reply.status, 400);
  EXPECT_THAT(reply.bytes, HasSubstr("65537 ids; allowed: at most 65536"));
}

TEST_F(OpenAiHttpTest, CountsRequestsAndTokens) {
  const auto call = Chat();
  port_.SendText("ab");
  port_.SendFinish(api::FINISH_REASON_LENGTH);
  clock_.Advance(absl::Milliseconds(5));
  call->Next();
  const std::string text = ExposeText(registry_);
  EXPECT_THAT(text, HasSubstr("tokenrouter_gateway_generation_tokens_total{author=\"small\"} 2"));
  EXPECT_THAT(text, HasSubstr("tokenrouter_gateway_time_to_first_token_seconds_count 1"));
  EXPECT_THAT(text, HasSubstr("tokenrouter_gateway_requests_in_flight 1"));
}

}  // namespace
}  // namespace tokenrouter
