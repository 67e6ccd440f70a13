#include "services/scheduler/mode_choice.h"

#include <gtest/gtest.h>

#include <map>

namespace tokenrouter {
namespace {

constexpr ServiceMode kRouted = ServiceMode::kRouted;
constexpr ServiceMode kLargeAlone = ServiceMode::kLargeAlone;
constexpr absl::Duration kTick = absl::Milliseconds(10);

// Tokens per second of all requests.
struct Rates {
  double routed, large_alone;
};

class ModeChoiceTest : public ::testing::Test {
 protected:
  // A world that gives `real` while the plan says `said`.
  void Serve(int32_t live, Rates said, Rates real, absl::Duration time, bool certain = true) {
    const PlannedLoad plan = {
        .requests = live,
        .prediction = {.policy = {},
                       .routed_per_s = said.routed,
                       .large_alone_per_s = said.large_alone,
                       .routed_ms_per_token = 1000.0 * live / said.routed,
                       .large_alone_ms_per_token = 1000.0 * live / said.large_alone}};
    for (const absl::Time end = now_ + time; now_ < end; now_ += kTick) {
      const bool routed = choice_.mode() == kRouted;
      owed_ += (routed ? real.routed : real.large_alone) * absl::ToDoubleSeconds(kTick);
      committed_ += static_cast<int64_t>(owed_);
      choice_.Commit(static_cast<int64_t>(owed_));
      owed_ -= static_cast<double>(static_cast<int64_t>(owed_));
      choice_.Follow(live, plan, certain, now_);
    }
  }
  ModeChoice choice_{ModeChoiceOptions{}};
  absl::Time now_ = absl::UnixEpoch();
  double owed_ = 0;
  int64_t committed_ = 0;
};

TEST_F(ModeChoiceTest, FollowsACertainPredictionAtOnce) {
  Serve(1, {40, 23}, {40, 23}, kTick);
  EXPECT_EQ(choice_.mode(), kRouted);
  Serve(16, {100, 150}, {100, 150}, kTick);
  EXPECT_EQ(choice_.mode(), kLargeAlone);
  Serve(1, {40, 23}, {40, 23}, absl::Seconds(1.1));
  EXPECT_EQ(choice_.mode(), kRouted);
}

TEST_F(ModeChoiceTest, ALoadThatFallsForAMomentChangesNothing) {
  Serve(16, {100, 150}, {100, 150}, absl::Seconds(1));
  for (int burst = 0; burst < 10; ++burst) {
    Serve(1, {40, 23}, {40, 23}, absl::Seconds(0.8));
    Serve(16, {100, 150}, {100, 150}, absl::Seconds(3));
  }
  EXPECT_EQ(choice_.mode(), kLargeAlone);
  EXPECT_EQ(choice_.switches(), 1u);
}

TEST_F(ModeChoiceTest, NeverTriesWhatItHasNoReasonToDoubt) {
  Serve(1, {46, 23}, {42, 24}, absl::Minutes(20));
  Serve(2, {66, 44}, {56, 41}, absl::Minutes(20));
  Serve(8, {133, 150}, {94, 104}, absl::Minutes(2));
  EXPECT_EQ(choice_.mode(), kLargeAlone) << "prompts take from both";
  EXPECT_EQ(choice_.switches(), 1u);
}

TEST_F(ModeChoiceTest, TriesTheOtherModeWhenItsOwnIsBelowWhatWasSaid) {
  // The plan thinks little of the large model alone, for a reason that is not so.
  Serve(16, {70, 27}, {40, 90}, absl::Minutes(2));
  EXPECT_EQ(choice_.mode(), kLargeAlone);
}

TEST_F(ModeChoiceTest, TriesTheOtherModeWhereBothLookAlike) {
  // With what prompts cost, 92 are promised where 94 are made.
  Serve(8, {139, 136}, {94, 104}, kTick);
  ASSERT_EQ(choice_.mode(), kRouted);
  Serve(8, {139, 136}, {94, 104}, absl::Minutes(1));
  EXPECT_EQ(choice_.mode(), kLargeAlone);
}

TEST_F(ModeChoiceTest, TriesTheOtherModeWhenNobodyKnowsForLong) {
  Serve(8, {60, 27}, {50, 90}, absl::Seconds(18), /*certain=*/false);
  EXPECT_EQ(choice_.mode(), kRouted) << "evidence may come";
  Serve(8, {60, 27}, {50, 90}, absl::Minutes(2), /*certain=*/false);
  EXPECT_EQ(choice_.mode(), kLargeAlone);
}

TEST_F(ModeChoiceTest, ATrialThatLosesIsShortAndSeldom) {
  Serve(4, {180, 90}, {100, 50}, absl::Hours(1));
  EXPECT_EQ(choice_.mode(), kRouted);
  EXPECT_GT(choice_.switches(), 0u);
  EXPECT_GT(static_cast<double>(committed_) / 3600, 98) << "of 100";
}

TEST_F(ModeChoiceTest, KnowsALoadThatComesBack) {
  const Rates said = {80, 55}, real = {40, 90};
  Serve(16, said, real, absl::Minutes(1));
  ASSERT_EQ(choice_.mode(), kLargeAlone);
  Serve(1, {40, 23}, {40, 23}, absl::Seconds(10));
  ASSERT_EQ(choice_.mode(), kRouted);
  Serve(16, said, real, kTick);
  EXPECT_EQ(choice_.mode(), kLargeAlone);
}

TEST_F(ModeChoiceTest, ServesALoadThatComesBackAsLastUntilItHasAPlan) {
  Serve(16, {100, 150}, {100, 150}, absl::Seconds(1));
  Serve(1, {40, 23}, {40, 23}, absl::Seconds(5));
  ASSERT_EQ(choice_.mode(), kRouted);
  choice_.Follow(64, /*plan=*/{}, /*certain=*/false, now_);
  EXPECT_EQ(choice_.mode(), kRouted) << "this one is new";
  choice_.Follow(15, /*plan=*/{}, /*certain=*/false, now_);
  EXPECT_EQ(choice_.mode(), kLargeAlone);
}

TEST_F(ModeChoiceTest, ATrialEndsWithItsLoadOrItsTime) {
  Serve(16, {90, 45}, {50, 55}, absl::Seconds(11));
  ASSERT_EQ(choice_.mode(), kLargeAlone) << "on trial: one window was measured";
  Serve(1, {40, 23}, {40, 23}, absl::Seconds(2));
  EXPECT_EQ(choice_.mode(), kRouted);
  Serve(8, {90, 40}, {50, 0}, absl::Seconds(20));
  ASSERT_EQ(choice_.mode(), kLargeAlone) << "where nothing comes";
  Serve(8, {90, 40}, {50, 0}, absl::Seconds(65));
  EXPECT_EQ(choice_.mode(), kRouted);
}

TEST_F(ModeChoiceTest, ProbesNowAndThen) {
  EXPECT_TRUE(choice_.TakeProbe(now_));
  EXPECT_FALSE(choice_.TakeProbe(now_ + absl::Seconds(9)));
  EXPECT_TRUE(choice_.TakeProbe(now_ + absl::Seconds(10)));
}

}  // namespace
}  // namespace tokenrouter
