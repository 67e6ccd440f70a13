#include "services/scheduler/pair_model/service_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

using ::testing::DoubleNear;
using ::testing::Optional;

constexpr ServiceMode kRouted = ServiceMode::kRouted;
constexpr ServiceMode kLargeAlone = ServiceMode::kLargeAlone;
constexpr absl::Duration kTick = absl::Milliseconds(10);

class ServiceRatesTest : public ::testing::Test {
 protected:
  // `live` requests commit so many tokens per second each. Without one the load stays what it was.
  void Serve(ServiceMode mode, int32_t live, double per_request, absl::Duration time) {
    if (live > 0) load_ = live;
    for (const absl::Time end = now_ + time; now_ < end; now_ += kTick) {
      owed_ += live * per_request * absl::ToDoubleSeconds(kTick);
      rates_.Commit(static_cast<int64_t>(owed_));
      owed_ -= static_cast<double>(static_cast<int64_t>(owed_));
      rates_.Follow(mode, live, load_, now_);
    }
  }
  ServiceRates rates_;
  absl::Time now_ = absl::UnixEpoch();
  double owed_ = 0;
  int32_t load_ = 0;
};

TEST_F(ServiceRatesTest, MeasuresTheModeInForce) {
  Serve(kRouted, 4, 20, absl::Seconds(60));
  EXPECT_THAT(rates_.Measured(kRouted, 4), Optional(DoubleNear(80, 1)));
  EXPECT_EQ(rates_.Measured(kLargeAlone, 4), std::nullopt);
}

TEST_F(ServiceRatesTest, IdleTimeDoesNotCount) {
  for (int i = 0; i < 60; ++i) {
    Serve(kRouted, 1, 50, absl::Seconds(1));
    Serve(kRouted, 0, 0, absl::Seconds(3));
  }
  EXPECT_THAT(rates_.Measured(kRouted, 1), Optional(DoubleNear(50, 2)));
}

TEST_F(ServiceRatesTest, TheTransitionBetweenModesDoesNotCount) {
  Serve(kRouted, 4, 50, absl::Seconds(10));
  Serve(kLargeAlone, 4, 20, absl::Seconds(1.9));
  EXPECT_EQ(rates_.Measured(kLargeAlone, 4), std::nullopt);
  Serve(kLargeAlone, 4, 90, absl::Seconds(10));
  EXPECT_THAT(rates_.Measured(kLargeAlone, 4), Optional(DoubleNear(360, 5)));
}

TEST_F(ServiceRatesTest, NewRequestsNeedNoTransition) {
  Serve(kRouted, 4, 50, absl::Seconds(10));
  Serve(kLargeAlone, 0, 0, absl::Seconds(1));
  Serve(kLargeAlone, 4, 90, absl::Seconds(2.1));
  EXPECT_THAT(rates_.Measured(kLargeAlone, 4), Optional(DoubleNear(360, 5)));
}

TEST_F(ServiceRatesTest, WhatTheLastRequestsOfTheOtherModeWroteDoesNotCount) {
  Serve(kRouted, 4, 50, absl::Seconds(10));
  Serve(kLargeAlone, 4, 20, absl::Seconds(1.9));
  Serve(kLargeAlone, 0, 0, absl::Seconds(1));
  Serve(kLargeAlone, 4, 90, absl::Seconds(2.1));
  EXPECT_THAT(rates_.Measured(kLargeAlone, 4), Optional(DoubleNear(360, 5)));
}

TEST_F(ServiceRatesTest, RemembersEveryLoad) {
  Serve(kRouted, 16, 10, absl::Seconds(60));
  Serve(kRouted, 1, 50, absl::Seconds(60));
  EXPECT_THAT(rates_.Measured(kRouted, 1), Optional(DoubleNear(50, 1)));
  EXPECT_THAT(rates_.Measured(kRouted, 16), Optional(DoubleNear(160, 4)));
  EXPECT_THAT(rates_.Measured(kRouted, 15), Optional(DoubleNear(150, 4))) << "of the same size";
  EXPECT_EQ(rates_.Measured(kRouted, 64), std::nullopt);
}

TEST_F(ServiceRatesTest, AWindowHoldsMoreThanAPrompt) {
  Serve(kRouted, 4, 4, absl::Seconds(7));
  EXPECT_EQ(rates_.Measured(kRouted, 4), std::nullopt) << "28 tokens of 32 each";
  Serve(kRouted, 4, 4, absl::Seconds(2));
  EXPECT_THAT(rates_.Measured(kRouted, 4), Optional(DoubleNear(16, 1)));
}

TEST_F(ServiceRatesTest, WhatALoadCutShortCountsBesideWholeWindows) {
  // As bursts do: prompts in the first part, then half a window without.
  for (int burst = 0; burst < 10; ++burst) {
    Serve(kRouted, 4, 8, absl::Seconds(4));
    Serve(kRouted, 4, 32, absl::Seconds(0.5));
    Serve(kRouted, 1, 50, absl::Seconds(0.01));
  }
  EXPECT_THAT(rates_.Measured(kRouted, 4), Optional(DoubleNear(4 * 48 / 4.5, 3)));
}

TEST_F(ServiceRatesTest, PartsAddUpToAWindow) {
  for (int burst = 0; burst < 2; ++burst) {
    EXPECT_EQ(rates_.Measured(kRouted, 4), std::nullopt);
    Serve(kRouted, 4, 12, absl::Seconds(1.5));
    Serve(kRouted, 1, 50, absl::Seconds(0.1));
  }
  EXPECT_THAT(rates_.Measured(kRouted, 4), Optional(DoubleNear(48, 2)));
}

TEST_F(ServiceRatesTest, ALoadOnTheMoveIsNotMeasured) {
  for (int i = 0; i < 100; ++i) {
    rates_.Commit(10);
    rates_.Follow(kRouted, 4, i % 2 == 0 ? 4 : 0, now_ += absl::Seconds(0.2));
  }
  EXPECT_EQ(rates_.Measured(kRouted, 4), std::nullopt);
}

TEST_F(ServiceRatesTest, ForgetsTheOtherModeLaterEachTime) {
  Serve(kRouted, 4, 20, absl::Seconds(20));
  Serve(kLargeAlone, 4, 50, absl::Seconds(110));
  EXPECT_NE(rates_.Measured(kRouted, 4), std::nullopt);
  Serve(kLargeAlone, 4, 50, absl::Seconds(20));
  EXPECT_EQ(rates_.Measured(kRouted, 4), std::nullopt);
  Serve(kRouted, 4, 30, absl::Seconds(10));
  EXPECT_THAT(rates_.Measured(kRouted, 4), Optional(DoubleNear(120, 4))) << "measured anew";
  Serve(kLargeAlone, 4, 50, absl::Seconds(200));
  EXPECT_NE(rates_.Measured(kRouted, 4), std::nullopt) << "a second time";
  Serve(kLargeAlone, 4, 50, absl::Seconds(60));
  EXPECT_EQ(rates_.Measured(kRouted, 4), std::nullopt);
}

TEST_F(ServiceRatesTest, MeasuresTheTimePerTokenWhileNoRequestPrefills) {
  for (int burst = 0; burst < 10; ++burst) {
    rates_.Expect(/*reading=*/4, /*answer_tokens=*/0);
    Serve(kRouted, 4, 0, absl::Seconds(0.5));
    rates_.Expect(2, 0);
    Serve(kRouted, 4, 20, absl::Seconds(0.5));
    rates_.Expect(0, 0);
    Serve(kRouted, 4, 40, absl::Seconds(1));
  }
  EXPECT_THAT(rates_.MeasuredMsPerToken(kRouted, 4), Optional(DoubleNear(25, 1)));
  EXPECT_THAT(rates_.Measured(kRouted, 4), Optional(DoubleNear(100, 4)));
  EXPECT_EQ(rates_.MeasuredMsPerToken(kLargeAlone, 4), std::nullopt);
}

TEST_F(ServiceRatesTest, AWindowWithTooManyPromptsIsPutRight) {
  // Answers of 64 tokens: 0.8 s for the prompt, 1.6 s for the rest; the last quarter is cut
  // off, as the first window of a trial is.
  rates_.Expect(/*reading=*/4, /*answer_tokens=*/64);
  Serve(kRouted, 4, 0, absl::Seconds(0.8));
  for (int i = 0; i < 4; ++i) rates_.Begin();
  rates_.Expect(0, 64);
  Serve(kRouted, 4, 40, absl::Seconds(1.25));
  EXPECT_THAT(rates_.Measured(kRouted, 4), Optional(DoubleNear(4 * 64 / (0.8 + 1.6), 4)));
}

TEST_F(ServiceRatesTest, AWindowOfShortAnswersHasAPrompt) {
  rates_.Expect(/*reading=*/0, /*answer_tokens=*/64);
  Serve(kRouted, 4, 40, absl::Seconds(10));
  EXPECT_EQ(rates_.Measured(kRouted, 4), std::nullopt);
  rates_.Begin();
  Serve(kRouted, 4, 40, absl::Seconds(1));
  EXPECT_NE(rates_.Measured(kRouted, 4), std::nullopt);
}

TEST_F(ServiceRatesTest, WhereARequestAlwaysPrefillsThereIsNoTimePerToken) {
  rates_.Expect(/*reading=*/1, /*answer_tokens=*/0);
  for (int second = 0; second < 60; ++second) {
    rates_.Begin();
    Serve(kRouted, 64, 20, absl::Seconds(1));
  }
  EXPECT_NE(rates_.Measured(kRouted, 64), std::nullopt);
  EXPECT_EQ(rates_.MeasuredMsPerToken(kRouted, 64), std::nullopt);
}

TEST_F(ServiceRatesTest, CorrectsAPredictionByWhatWasMeasured) {
  const ModePrediction said = {.policy = {},
                               .routed_per_s = 110,
                               .large_alone_per_s = 100,
                               .routed_ms_per_token = 36,
                               .large_alone_ms_per_token = 40};
  Serve(kRouted, 4, 22, absl::Seconds(60));
  ModePrediction corrected = rates_.Correct(said, 4);
  EXPECT_NEAR(corrected.routed_per_s, 88, 2);
  EXPECT_NEAR(corrected.routed_ms_per_token, 45, 1);
  EXPECT_NEAR(corrected.large_alone_per_s, 80, 2) << "it has the same co-located load";
  Serve(kLargeAlone, 4, 24, absl::Seconds(60));
  corrected = rates_.Correct(said, 4);
  EXPECT_NEAR(corrected.large_alone_per_s, 96, 2);
  EXPECT_EQ(corrected.Better(), kLargeAlone);
}

}  // namespace
}  // namespace tokenrouter
