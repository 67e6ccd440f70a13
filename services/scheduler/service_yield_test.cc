#include "services/scheduler/service_yield.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

constexpr ServiceMode kRouted = ServiceMode::kRouted;
constexpr ServiceMode kLargeAlone = ServiceMode::kLargeAlone;
constexpr absl::Duration kTick = absl::Milliseconds(10);

class ServiceYieldTest : public ::testing::Test {
 protected:
  // `live` requests at 100 tokens/s each are predicted; `share` of it is committed.
  void Serve(ServiceMode mode, int32_t live, double share, absl::Duration time,
             double predicted = 100) {
    for (const absl::Time end = now_ + time; now_ < end; now_ += kTick) {
      owed_ += live * 100 * share * absl::ToDoubleSeconds(kTick);
      yield_.Commit(static_cast<int64_t>(owed_));
      owed_ -= static_cast<double>(static_cast<int64_t>(owed_));
      yield_.Follow(mode, live, predicted, now_);
    }
  }
  ServiceYield yield_;
  absl::Time now_ = absl::UnixEpoch();
  double owed_ = 0;
};

TEST_F(ServiceYieldTest, LearnsTheYieldOfTheModeInForce) {
  Serve(kRouted, 4, .8, absl::Seconds(60));
  EXPECT_NEAR(yield_.Of(kRouted), .8, .02);
  EXPECT_DOUBLE_EQ(yield_.Of(kLargeAlone), 1);
}

TEST_F(ServiceYieldTest, IdleTimeDoesNotCount) {
  for (int i = 0; i < 60; ++i) {
    Serve(kRouted, 1, .9, absl::Seconds(1));
    Serve(kRouted, 0, 0, absl::Seconds(3));
  }
  EXPECT_NEAR(yield_.Of(kRouted), .9, .03);
}

TEST_F(ServiceYieldTest, TheTransitionBetweenModesDoesNotCount) {
  Serve(kRouted, 4, 1, absl::Seconds(10));
  Serve(kLargeAlone, 4, .3, absl::Seconds(1.9));
  Serve(kLargeAlone, 4, 1, absl::Seconds(10));
  EXPECT_NEAR(yield_.Of(kLargeAlone), 1, .01);
}

TEST_F(ServiceYieldTest, WithoutAPredictionNothingIsLearned) {
  Serve(kRouted, 4, .5, absl::Seconds(20), /*predicted=*/0);
  EXPECT_DOUBLE_EQ(yield_.Of(kRouted), 1);
}

TEST_F(ServiceYieldTest, ForgetsTheOtherModeSlowly) {
  Serve(kRouted, 4, .6, absl::Seconds(60));
  const double before = yield_.Of(kRouted);
  Serve(kLargeAlone, 4, 1, absl::Seconds(10));
  EXPECT_LT(yield_.Of(kRouted), before + .1);
  Serve(kLargeAlone, 4, 1, absl::Seconds(600));
  EXPECT_GT(yield_.Of(kRouted), .95);
}

TEST_F(ServiceYieldTest, CorrectsAPrediction) {
  Serve(kRouted, 4, .8, absl::Seconds(100));
  const ModePrediction corrected = yield_.Correct({.policy = {},
                                                   .routed_per_s = 110,
                                                   .large_alone_per_s = 100,
                                                   .routed_ms_per_token = 8,
                                                   .large_alone_ms_per_token = 10});
  EXPECT_NEAR(corrected.routed_per_s, 88, 2);
  EXPECT_NEAR(corrected.routed_ms_per_token, 10, .2);
  EXPECT_EQ(corrected.Better(), kLargeAlone);
}

}  // namespace
}  // namespace tokenrouter
