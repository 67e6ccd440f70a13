#include "services/gateway/generation/request_intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/status/status_matchers.h"
#include "services/gateway/errors/api_error.h"
#include "services/gateway/testing/fake_text_model.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

class RequestIntakeTest : public ::testing::Test {
 protected:
  RequestIntakeTest() {
    pair_.set_context_limit(20);
    request_.request_id = "r";
    request_.model = "tokenrouter";
    request_.input = std::string("hello");
  }
  static IntakeOptions Options() {
    IntakeOptions options;
    options.aliases = {"other"};
    return options;
  }
  absl::StatusOr<TokenRequest> Prepare() { return intake_.Prepare(request_, pair_); }
  ApiError Refusal() { return ToApiError(Prepare().status()); }

  FakeTextModel model_;
  RequestIntake intake_{Options(), &model_, [] { return uint64_t{77}; }};
  GenerationRequest request_;
  wire::PairStatus pair_;
};

TEST_F(RequestIntakeTest, FillsWhatTheClientLeftOut) {
  TR_ASSERT_OK_AND_ASSIGN(const TokenRequest tokens, Prepare());
  EXPECT_EQ(tokens.ids.size(), 5u);
  EXPECT_EQ(tokens.spec.prompt_length(), 5);
  EXPECT_EQ(tokens.spec.pair(), "default");
  EXPECT_EQ(tokens.spec.sampling().seed(), 77u);
  EXPECT_EQ(tokens.spec.routing().algorithm(), "entropy");
  EXPECT_EQ(tokens.spec.routing().parameters().at("threshold"), 0.45);
  EXPECT_EQ(tokens.spec.stop().max_new_tokens(), 15) << "the default is what the context leaves";
  EXPECT_FALSE(tokens.spec.string_stops());
}

TEST_F(RequestIntakeTest, RefusesUnknownRoles) {
  pair_.set_context_limit(1000);
  request_.input = std::vector<ChatTurn>{{"user", "hi"}, {"boss", "x"}};
  const ApiError error = Refusal();
  EXPECT_EQ(error.param, "messages[1].role");
  EXPECT_THAT(error.message, HasSubstr("messages[1].role is \"boss\"; allowed: system, user"));
}

TEST_F(RequestIntakeTest, ADeveloperMessageIsASystemMessage) {
  pair_.set_context_limit(1000);
  request_.input = std::vector<ChatTurn>{{"developer", "x"}};
  TR_ASSERT_OK_AND_ASSIGN(const TokenRequest tokens, Prepare());
  EXPECT_EQ(model_.Decode(tokens.ids), "system: x\n");
}

TEST_F(RequestIntakeTest, BoundsTheMessages) {
  request_.input = std::vector<ChatTurn>();
  EXPECT_THAT(Refusal().message, HasSubstr("messages has 0 entries; allowed: 1 to 4096"));
  request_.input = std::vector<ChatTurn>(4097, {"user", ""});
  EXPECT_THAT(Refusal().message, HasSubstr("messages has 4097 entries"));
}

TEST_F(RequestIntakeTest, BoundsWhatStops) {
  request_.stop = std::vector<std::string>(17, "a");
  EXPECT_EQ(Refusal().param, "stop");
  EXPECT_THAT(Refusal().message, HasSubstr("stop has 17 strings; allowed: at most 16"));
  request_.stop = {"a", ""};
  EXPECT_THAT(Refusal().message, HasSubstr("stop[1] has 0 bytes; allowed: 1 to 1024"));
  request_.stop = {std::string(1025, 'a')};
  EXPECT_THAT(Refusal().message, HasSubstr("stop[0] has 1025 bytes"));
  request_.stop = {};
  request_.stop_token_ids.assign(129, 1);
  EXPECT_EQ(Refusal().param, "stop_token_ids");
  EXPECT_THAT(Refusal().message, HasSubstr("stop_token_ids has 129 ids; allowed: at most 128"));
}

TEST_F(RequestIntakeTest, KeepsWhatTheClientSaid) {
  request_.model = "other";
  request_.seed = 5;
  request_.max_new_tokens = 3;
  request_.stop = {"x"};
  request_.routing = RoutingChoice{"random", {{"p", 0.5}}};
  TR_ASSERT_OK_AND_ASSIGN(const TokenRequest tokens, Prepare());
  EXPECT_EQ(tokens.spec.sampling().seed(), 5u);
  EXPECT_EQ(tokens.spec.stop().max_new_tokens(), 3);
  EXPECT_EQ(tokens.spec.routing().algorithm(), "random");
  EXPECT_TRUE(tokens.spec.string_stops());
}

TEST_F(RequestIntakeTest, RendersAChat) {
  request_.input = std::vector<ChatTurn>{{"user", "hi"}};
  TR_ASSERT_OK_AND_ASSIGN(const TokenRequest tokens, Prepare());
  EXPECT_EQ(tokens.ids.size(), std::string("user: hi\n").size());
}

TEST_F(RequestIntakeTest, ATemplateThatRefusesIsABadRequest) {
  request_.input = std::vector<ChatTurn>{{"user", "hi"}};
  request_.template_kwargs_json = R"({"refuse":1})";
  EXPECT_EQ(Refusal().http_status, 400);
  EXPECT_EQ(Refusal().param, "messages");
}

TEST_F(RequestIntakeTest, AnUnknownModelListsTheKnownOnes) {
  request_.model = "gpt";
  EXPECT_EQ(Refusal().http_status, 404);
  EXPECT_EQ(Refusal().code, "model_not_found");
  EXPECT_THAT(Refusal().message, HasSubstr("known: tokenrouter, other"));
}

TEST_F(RequestIntakeTest, TooLongAPromptSaysAllNumbers) {
  request_.max_new_tokens = 16;
  const ApiError error = Refusal();
  EXPECT_EQ(error.http_status, 400);
  EXPECT_EQ(error.code, "context_length_exceeded");
  EXPECT_EQ(error.numbers.size(), 3u);
  request_.max_new_tokens.reset();
  request_.input = std::string(20, 'x');
  EXPECT_EQ(Refusal().code, "context_length_exceeded")
      << "the context leaves no space for one token";
}

TEST_F(RequestIntakeTest, AHopelesslyLongPromptIsRefusedWithoutTokenizingItAll) {
  request_.input = std::string(4 << 20, 'x');
  const ApiError error = Refusal();
  EXPECT_EQ(error.code, "context_length_exceeded");
  ASSERT_EQ(error.numbers.size(), 3u);
  for (const auto& [name, value] : error.numbers) {
    if (name == "prompt_tokens") {
      EXPECT_LE(value, 64 << 10) << "one piece was enough";
    }
  }
}

TEST_F(RequestIntakeTest, ADefaultLengthIsClampedAndNotRefused) {
  request_.default_max_new_tokens = 16;
  EXPECT_EQ(Prepare()->spec.stop().max_new_tokens(), 15);
}

TEST_F(RequestIntakeTest, RefusesValuesOutOfRangeByField) {
  request_.sampling.temperature = 3;
  EXPECT_EQ(Refusal().param, "temperature");
  EXPECT_THAT(Refusal().message, HasSubstr("allowed: [0, 2]"));
  request_.sampling = {};
  request_.routing = RoutingChoice{"nonsense", {}};
  EXPECT_EQ(Refusal().param, "routing");
  request_.routing = RoutingChoice{"random", {{"p", 2}}};
  EXPECT_EQ(Refusal().http_status, 400);
  request_.routing.reset();
  request_.min_new_tokens = 16;
  EXPECT_EQ(Refusal().param, "min_tokens");
  request_.min_new_tokens = 0;
  request_.input = std::vector<TokenId>{1, 5000};
  EXPECT_EQ(Refusal().param, "prompt");
  request_.input = std::string();
  EXPECT_THAT(Refusal().message, HasSubstr("0 tokens"));
}

TEST_F(RequestIntakeTest, IsNotReadyBeforeAWorkerHasAttached) {
  pair_.set_context_limit(0);
  EXPECT_EQ(Refusal().http_status, 503);
  EXPECT_GT(Refusal().retry_after, absl::ZeroDuration());
}

TEST(RequestIdTest, AcceptsOnlyHarmlessOnes) {
  EXPECT_THAT(CheckRequestId("a-B_9.c:d"), IsOk());
  EXPECT_THAT(CheckRequestId(DrawRequestId()), IsOk());
  EXPECT_THAT(CheckRequestId(""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CheckRequestId("a b"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CheckRequestId("a\r\nX: y"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CheckRequestId(std::string(129, 'a')), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(RoutingParametersTest, ReadsPairs) {
  EXPECT_EQ(ParseRoutingParameters("threshold=0.45,window=4")->at("window"), 4);
  EXPECT_TRUE(ParseRoutingParameters("")->empty());
  EXPECT_THAT(ParseRoutingParameters("threshold"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseRoutingParameters("a=b"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace tokenrouter
