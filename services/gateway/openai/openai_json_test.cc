#include "services/gateway/openai/openai_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "libs/status/status_matchers.h"
#include "services/gateway/errors/api_error.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kMessages[] = R"("messages":[{"role":"user","content":"hi"}])";

absl::StatusOr<OpenAiRequest> ParseChat(const std::string& fields) {
  return ParseOpenAiRequest(
      OpenAiEndpoint::kChat,
      absl::StrCat(R"({"model":"pair",)", kMessages, fields.empty() ? "" : ",", fields, "}"));
}

absl::StatusOr<OpenAiRequest> ParseCompletion(const std::string& fields) {
  return ParseOpenAiRequest(OpenAiEndpoint::kCompletions,
                            absl::StrCat(R"({"model":"pair",)", fields, "}"));
}

TEST(OpenAiJsonTest, ReadsAFullChatRequest) {
  TR_ASSERT_OK_AND_ASSIGN(const OpenAiRequest request, ParseChat(R"(
      "max_completion_tokens":7,"min_tokens":2,"temperature":0,"top_p":0.5,"top_k":3,"min_p":0.1,
      "frequency_penalty":1,"presence_penalty":-1,"repetition_penalty":1.1,"seed":-1,
      "logit_bias":{"5":-100},"stop":["a","b"],"stop_token_ids":[9],"ignore_eos":true,
      "stream":true,"stream_options":{"include_usage":true},"logprobs":true,"user":"me",
      "metadata":{"a":"b"},"store":false,"service_tier":"auto","n":3,"tools":[],
      "response_format":{"type":"text"},"chat_template_kwargs":{"x":1},"unknown":[1],
      "routing":{"algorithm":"random","p":0.1},"return_routing":true)"));
  const GenerationRequest& generation = request.generation;
  EXPECT_EQ(generation.model, "pair");
  EXPECT_EQ(generation.max_new_tokens, 7);
  EXPECT_EQ(generation.min_new_tokens, 2);
  EXPECT_TRUE(generation.sampling.greedy());
  EXPECT_EQ(generation.sampling.top_k, 3);
  EXPECT_EQ(generation.seed, ~uint64_t{0});
  EXPECT_THAT(generation.stop, ElementsAre("a", "b"));
  EXPECT_THAT(generation.stop_token_ids, ElementsAre(9));
  EXPECT_EQ(generation.sampling.logit_bias.at(0), std::make_pair(5, -100.0f));
  EXPECT_EQ(generation.routing->algorithm, "random");
  EXPECT_EQ(generation.routing->parameters.at("p"), 0.1);
  EXPECT_TRUE(generation.ignore_eos && generation.logprobs && generation.return_routing);
  EXPECT_TRUE(request.stream && request.include_usage);
  EXPECT_EQ(request.choices, 3);
  EXPECT_EQ(generation.template_kwargs_json, R"({"x":1})");
}

TEST(OpenAiJsonTest, ReadsHowARequestIsServed) {
  TR_ASSERT_OK_AND_ASSIGN(const OpenAiRequest request,
                          ParseChat(R"("routing":{"algorithm":"random","p":0.1,
      "service_mode":"large_alone","max_defer_ms":5,"ttft_slo_ms":600000,"token_slo_ms":0})"));
  EXPECT_EQ(request.generation.service_mode, api::SERVICE_MODE_LARGE_ALONE);
  EXPECT_EQ(request.generation.bounds.max_defer_ms, 5);
  EXPECT_EQ(request.generation.bounds.ttft_slo_ms, 600000);
  EXPECT_EQ(request.generation.bounds.token_slo_ms, 0);
  EXPECT_EQ(request.generation.routing->parameters.size(), 1u) << "these are no parameters";
}

TEST(OpenAiJsonTest, HowARequestIsServedNeedsNoAlgorithm) {
  TR_ASSERT_OK_AND_ASSIGN(const OpenAiRequest routed,
                          ParseChat(R"("routing":{"service_mode":"routed"})"));
  EXPECT_EQ(routed.generation.service_mode, api::SERVICE_MODE_ROUTED);
  EXPECT_FALSE(routed.generation.routing.has_value()) << "the pair's default";
  TR_ASSERT_OK_AND_ASSIGN(const OpenAiRequest automatic,
                          ParseChat(R"("routing":{"service_mode":"auto","ttft_slo_ms":100})"));
  EXPECT_EQ(automatic.generation.service_mode, api::SERVICE_MODE_UNSPECIFIED);
}

TEST(OpenAiJsonTest, NullFieldsAreAbsent) {
  TR_ASSERT_OK_AND_ASSIGN(const OpenAiRequest request,
                          ParseChat(R"("max_tokens":null,"stop":null,"seed":null,"tools":null)"));
  EXPECT_FALSE(request.generation.max_new_tokens.has_value());
  EXPECT_FALSE(request.generation.seed.has_value());
}

TEST(OpenAiJsonTest, JoinsTextPartsAndMapsDeveloperToSystem) {
  TR_ASSERT_OK_AND_ASSIGN(
      const OpenAiRequest request,
      ParseOpenAiRequest(OpenAiEndpoint::kChat,
                         R"({"model":"m","messages":[{"role":"developer","content":[
          {"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant"}]})"));
  const auto& turns = std::get<std::vector<ChatTurn>>(request.generation.input);
  EXPECT_EQ(turns.at(0).role, "developer");
  EXPECT_EQ(turns.at(0).content, "ab");
  EXPECT_EQ(turns.at(1).content, "");
}

TEST(OpenAiJsonTest, PromptMayBeTextIdsOrAListOfOne) {
  const auto text = [](const absl::StatusOr<OpenAiRequest>& request) {
    return std::get<std::string>(request->generation.input);
  };
  const auto ids = [](const absl::StatusOr<OpenAiRequest>& request) {
    return std::get<std::vector<TokenId>>(request->generation.input);
  };
  EXPECT_EQ(text(ParseCompletion(R"("prompt":"a")")), "a");
  EXPECT_EQ(text(ParseCompletion(R"("prompt":["a"])")), "a");
  EXPECT_THAT(ids(ParseCompletion(R"("prompt":[1,2])")), ElementsAre(1, 2));
  EXPECT_THAT(ids(ParseCompletion(R"("prompt":[[1,2]])")), ElementsAre(1, 2));
}

TEST(OpenAiJsonTest, CompletionsDefaultToSixteenTokensAndChatToNone) {
  EXPECT_EQ(ParseCompletion(R"("prompt":"a")")->generation.default_max_new_tokens, 16);
  EXPECT_EQ(ParseChat("")->generation.default_max_new_tokens, 0);
}

struct BadCase {
  const char* fields;
  const char* param;
  const char* message;
};

class BadChatTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadChatTest, IsRefusedNamingFieldAndRange) {
  const absl::StatusOr<OpenAiRequest> request = ParseChat(GetParam().fields);
  ASSERT_THAT(request, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
  const ApiError error = ToApiError(request.status());
  EXPECT_EQ(error.param, GetParam().param);
  EXPECT_EQ(error.http_status, 400);
  EXPECT_EQ(error.type, "invalid_request_error");
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadChatTest,
    ::testing::Values(
        BadCase{R"("max_tokens":0)", "max_tokens", "max_tokens is 0; allowed: [1, 2147483647]"},
        BadCase{R"("max_tokens":-5)", "max_tokens", "-5"},
        BadCase{R"("max_tokens":1.5)", "max_tokens", "must be an integer, got number 1.5"},
        BadCase{R"("max_tokens":"9")", "max_tokens", "must be an integer, got string \"9\""},
        BadCase{R"("max_tokens":18446744073709551615)", "max_tokens", "allowed"},
        BadCase{R"("max_tokens":1,"max_completion_tokens":2)", "max_completion_tokens", "one of"},
        BadCase{R"("min_tokens":-1)", "min_tokens", "allowed: [0"},
        BadCase{R"("temperature":"hot")", "temperature", "must be a number"},
        BadCase{R"("top_k":-2)", "top_k", "allowed: [-1"},
        BadCase{R"("seed":1e3)", "seed", "must be an integer"},
        BadCase{R"("stream":"yes")", "stream", "must be a boolean"},
        BadCase{R"("stream_options":{"include_usage":true})", "stream_options", "stream: true"},
        BadCase{R"("stream":true,"stream_options":3)", "stream_options", "must be an object"},
        BadCase{R"("n":17)", "n", "n is 17; allowed: [1, 16]"},
        BadCase{R"("n":0)", "n", "n is 0; allowed: [1, 16]"},
        BadCase{R"("n":2.0)", "n", "n must be an integer"},
        BadCase{R"("n":2,"best_of":2)", "best_of", "best_of is 2; allowed: 1"},
        BadCase{R"("tools":[{}])", "tools", "not supported yet"},
        BadCase{R"("tool_choice":"required")", "tool_choice", "not supported yet"},
        BadCase{R"("response_format":{"type":"json_object"})", "response_format",
                "not supported yet"},
        BadCase{R"("logprobs":1)", "logprobs", "must be a boolean"},
        BadCase{R"("logprobs":true,"top_logprobs":2)", "top_logprobs", "not supported yet"},
        BadCase{R"("stop":5)", "stop", "must be a string"},
        BadCase{R"("stop_token_ids":[-1])", "stop_token_ids", "stop_token_ids[0] is -1"},
        BadCase{R"("logit_bias":{"x":1})", "logit_bias", "token ids as strings"},
        BadCase{R"("logit_bias":[1])", "logit_bias", "must be an object"},
        BadCase{R"("routing":"random")", "routing", "must be an object"},
        BadCase{R"("routing":{"p":0.1})", "routing.algorithm", "missing"},
        BadCase{R"("routing":{"service_mode":"routed","p":0.1})", "routing.algorithm", "missing"},
        BadCase{R"("routing":{"service_mode":"small"})", "routing.service_mode",
                R"(is "small"; allowed: "auto", "routed", "large_alone")"},
        BadCase{R"("routing":{"service_mode":1})", "routing.service_mode", "must be a string"},
        BadCase{R"("routing":{"max_defer_ms":-1})", "routing.max_defer_ms", "[0, 600000]"},
        BadCase{R"("routing":{"ttft_slo_ms":600001})", "routing.ttft_slo_ms", "is 600001"},
        BadCase{R"("routing":{"token_slo_ms":1.5})", "routing.token_slo_ms", "integer"},
        BadCase{R"("routing":{"algorithm":"random","p":"x"})", "routing.p", "must be a number"}));

TEST(OpenAiJsonTest, RefusesBadConversations) {
  const auto parse = [](const std::string& messages) {
    return ParseOpenAiRequest(OpenAiEndpoint::kChat,
                              absl::StrCat(R"({"model":"m","messages":)", messages, "}"));
  };
  EXPECT_THAT(parse("null"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("missing")));
  EXPECT_THAT(parse("[3]"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("messages[0]")));
  EXPECT_THAT(parse(R"([{"content":"x"}])"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("role is missing")));
  EXPECT_THAT(parse(R"([{"role":"user"}])"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("content is missing")));
  EXPECT_THAT(parse(R"([{"role":"user","content":[{"type":"image_url"}]}])"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reads text only")));
}

TEST(OpenAiJsonTest, RefusesBadPrompts) {
  EXPECT_THAT(ParseCompletion(R"("prompt":["a","b"])"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 prompts")));
  EXPECT_THAT(ParseCompletion(R"("prompt":[])"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty")));
  EXPECT_THAT(ParseCompletion(R"("prompt":[1,"a"])"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("prompt[1]")));
  EXPECT_THAT(ParseCompletion(R"("max_tokens":1)"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("prompt is missing")));
  EXPECT_THAT(ParseCompletion(R"("prompt":"a","logprobs":3)"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("alternatives")));
}

TEST(OpenAiJsonTest, SaysWhereBadJsonBreaks) {
  const auto bad = [](const std::string& body) {
    return ParseOpenAiRequest(OpenAiEndpoint::kChat, body);
  };
  EXPECT_THAT(bad(R"({"model": "a", })"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at byte 15 of 16")));
  EXPECT_THAT(bad(""), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not valid JSON")));
  EXPECT_THAT(bad("{} {}"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(bad("[]"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("object")));
  EXPECT_THAT(bad(std::string(100000, '[')), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(bad("{\"model\":\"\xFF\"}"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(ToApiError(bad("{").status()).code, "invalid_json");
}

TEST(OpenAiJsonTest, ReadsTokenizeAndDetokenize) {
  EXPECT_EQ(ParseTokenizeRequest(R"({"prompt":"a"})")->prompt, "a");
  EXPECT_THAT(ParseDetokenizeRequest(R"({"tokens":[1,2]})")->tokens, ElementsAre(1, 2));
  EXPECT_THAT(ParseTokenizeRequest("{}"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace tokenrouter
