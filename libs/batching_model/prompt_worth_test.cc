#include "libs/batching_model/prompt_worth.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

ModePrediction Rates(double routed, double alone) {
  return {.routed_per_s = routed,
          .large_alone_per_s = alone,
          .routed_ms_per_token = 1000 / routed,
          .large_alone_ms_per_token = 1000 / alone};
}

TEST(PromptWorthTest, APromptThatCostsMoreThanRoutingSavesIsServedByTheLargeModelAlone) {
  const ModePrediction prediction = Rates(200, 100);  // Routing saves 5 ms of device per token.
  const struct {
    double small_prefill, large_prefill, tokens;
    bool worth;
  } rows[] = {
      {0, 0, 100, true},       {400, 2000, 100, true},  // Saves 500.
      {600, 2000, 100, false},                          // Costs more than that.
      {600, 2000, 200, true},                           // Unless more tokens are generated.
      {100, 2000, 1, true},  // One token: the large prefill is probably never needed.
      {100, 50, 1, false},   //
      {100, 0, 0, false},    // No token to generate.
  };
  for (const auto& row : rows) {
    EXPECT_EQ(RoutingSavesMs(prediction, {row.small_prefill, row.large_prefill, row.tokens}) > 0,
              row.worth)
        << row.small_prefill << " " << row.tokens;
  }
  EXPECT_LT(RoutingSavesMs(Rates(90, 100), {1, 0, 1000}), 0);
}

TEST(PromptWorthTest, OneDevicePaysForBothPromptsTwoForTheSlower) {
  PromptCost prompt{
      .small_prefill_ms = 100, .large_prefill_ms = 400, .expected_tokens = 1, .r = .25};
  EXPECT_DOUBLE_EQ(PromptMs(prompt, ServiceMode::kLargeAlone), 400);
  EXPECT_DOUBLE_EQ(PromptMs(prompt, ServiceMode::kRouted), 200);
  prompt.expected_tokens = 2;
  EXPECT_DOUBLE_EQ(PromptMs(prompt, ServiceMode::kRouted), 100 + 400 * (1 - .75 * .75));
  prompt.shared_device = false;
  EXPECT_DOUBLE_EQ(PromptMs(prompt, ServiceMode::kRouted), 400 * (1 - .75 * .75));
  prompt.expected_tokens = 0;
  EXPECT_DOUBLE_EQ(PromptMs(prompt, ServiceMode::kRouted), 100);
}

TEST(PromptWorthTest, PromptsCanTurnTheBetterModeRound) {
  const PromptCost mean{
      .small_prefill_ms = 200, .large_prefill_ms = 500, .expected_tokens = 50, .r = 1};
  const ModePrediction decoding = Rates(50, 40);  // 20 and 25 ms per token.
  const ModePrediction whole = WithPrompts(decoding, mean);
  EXPECT_DOUBLE_EQ(whole.routed_per_s, 1000 / 34.0);
  EXPECT_DOUBLE_EQ(whole.large_alone_per_s, 1000 / 35.0);
  EXPECT_DOUBLE_EQ(whole.routed_ms_per_token, 20) << "the time per token excludes prefill";
  EXPECT_DOUBLE_EQ(whole.large_alone_ms_per_token, 25);
  EXPECT_EQ(whole.Better(), ServiceMode::kRouted);
  PromptCost longer = mean;
  longer.small_prefill_ms = 400;
  EXPECT_EQ(WithPrompts(decoding, longer).Better(), ServiceMode::kLargeAlone);
  EXPECT_DOUBLE_EQ(WithPrompts(decoding, {.small_prefill_ms = 1}).routed_per_s, 50)
      << "without expected tokens nothing is known";
}

TEST(PromptWorthTest, PromptsThatAPredictionContainsCountOnce) {
  const PromptCost mean{
      .small_prefill_ms = 200, .large_prefill_ms = 500, .expected_tokens = 50, .r = .1};
  const ModePrediction decoding = Rates(50, 40);
  for (const double small_ms : {0., 100., 249., 251., 500.}) {
    PromptCost prompt = mean;
    prompt.small_prefill_ms = small_ms;
    prompt.expected_tokens = 30;
    EXPECT_NEAR(RoutingSavesMs(WithPrompts(decoding, mean), prompt, mean),
                RoutingSavesMs(decoding, prompt), 1e-9);
  }
}

}  // namespace
}  // namespace tokenrouter
