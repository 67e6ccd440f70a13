#include "libs/routing/wire_types.h"

#include <limits>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(WireTypesTest, SamplingParametersSurviveTheWire) {
  SamplingParameters p;
  p.temperature = 0.5f;
  p.top_k = 7;
  p.top_p = 0.9f;
  p.min_p = 0.1f;
  p.frequency_penalty = 1;
  p.presence_penalty = -1;
  p.repetition_penalty = 1.2f;
  p.logit_bias = {{3, 1.0f}, {9, -2.0f}};
  p.seed = 1ull << 60;
  p.choice = 2;
  TR_ASSERT_OK_AND_ASSIGN(const SamplingParameters back, FromWire(ToWire(p), 2));
  EXPECT_EQ(back.temperature, p.temperature);
  EXPECT_EQ(back.top_k, p.top_k);
  EXPECT_EQ(back.top_p, p.top_p);
  EXPECT_EQ(back.min_p, p.min_p);
  EXPECT_EQ(back.frequency_penalty, p.frequency_penalty);
  EXPECT_EQ(back.presence_penalty, p.presence_penalty);
  EXPECT_EQ(back.repetition_penalty, p.repetition_penalty);
  EXPECT_EQ(back.logit_bias, p.logit_bias);
  EXPECT_EQ(back.seed, p.seed);
  EXPECT_EQ(back.choice, 2u);
}

TEST(WireTypesTest, UnsetSamplingScalarsTakeTheDefaults) {
  TR_ASSERT_OK_AND_ASSIGN(const SamplingParameters p, FromWire(api::SamplingParameters(), 0));
  EXPECT_EQ(p.temperature, 1.0f);
  EXPECT_EQ(p.top_p, 1.0f);
  EXPECT_EQ(p.repetition_penalty, 1.0f);
}

TEST(WireTypesTest, RefusesSamplingOutOfRange) {
  api::SamplingParameters wire;
  wire.set_temperature(std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(FromWire(wire, 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("temperature")));
}

TEST(WireTypesTest, WindowsSurviveTheWire) {
  for (const Window& window : {Window::Tokens(3), Window::UntilEnd(), Window::OwnRule(),
                               Window{Window::Kind::kDelimiter, 0, std::vector<TokenId>{5, 6}}}) {
    TR_ASSERT_OK_AND_ASSIGN(const Window back, FromWire(ToWire(window)));
    EXPECT_EQ(back.kind, window.kind);
    EXPECT_EQ(back.tokens, window.tokens);
    EXPECT_EQ(back.delimiters, window.delimiters);
  }
}

TEST(WireTypesTest, RefusesWindowsThatSayNothing) {
  EXPECT_THAT(FromWire(wire::Window()), StatusIs(absl::StatusCode::kInvalidArgument));
  wire::Window tokens;
  tokens.set_kind(wire::Window::KIND_TOKENS);
  EXPECT_THAT(FromWire(tokens),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("window.tokens is 0")));
  wire::Window delimiter;
  delimiter.set_kind(wire::Window::KIND_DELIMITER);
  EXPECT_THAT(FromWire(delimiter), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(WireTypesTest, RolesAndReasonsSurviveTheWire) {
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    TR_ASSERT_OK_AND_ASSIGN(const Role back, FromWire(ToWire(role)));
    EXPECT_EQ(back, role);
  }
  EXPECT_THAT(FromWire(api::ROLE_UNSPECIFIED), StatusIs(absl::StatusCode::kInvalidArgument));
  for (const FinishReason reason : {FinishReason::kNone, FinishReason::kStop, FinishReason::kLength,
                                    FinishReason::kCancelled, FinishReason::kError}) {
    TR_ASSERT_OK_AND_ASSIGN(const FinishReason back, FromWire(ToWire(reason)));
    EXPECT_EQ(back, reason);
  }
  EXPECT_THAT(FromWire(static_cast<api::FinishReason>(17)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("17")));
}

TEST(WireTypesTest, StopRulesSurviveTheWireAndAreChecked) {
  const StopRules rules{
      .stop_ids = {1, 2}, .ignore_eos = true, .min_new_tokens = 3, .max_new_tokens = 9};
  TR_ASSERT_OK_AND_ASSIGN(const StopRules back, FromWire(ToWire(rules)));
  EXPECT_THAT(back.stop_ids, ElementsAre(1, 2));
  EXPECT_TRUE(back.ignore_eos);
  EXPECT_EQ(back.min_new_tokens, 3);
  EXPECT_EQ(back.max_new_tokens, 9);
  EXPECT_THAT(FromWire(wire::StopRules()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_new_tokens is 0")));
  wire::StopRules wire = ToWire(rules);
  wire.set_min_new_tokens(10);
  EXPECT_THAT(FromWire(wire), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[0, 9]")));
}

TEST(WireTypesTest, AuthorsAreOneByteEach) {
  EXPECT_EQ(CheckedAuthor('\x01'), Author::kSmall);
  EXPECT_EQ(CheckedAuthor('\x02'), Author::kLarge);
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(IsAuthor(static_cast<char>(byte)), byte == 1 || byte == 2) << byte;
  }
}

}  // namespace
}  // namespace tokenrouter
