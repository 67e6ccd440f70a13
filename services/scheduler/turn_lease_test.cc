#include "services/scheduler/turn_lease.h"

#include <gtest/gtest.h>

#include <vector>

namespace tokenrouter {
namespace {

using Member = TurnSnapshot::Member;

std::optional<TurnDecision> Decide(int small, int large, int threshold,
                                   std::optional<Role> cut_off = std::nullopt) {
  const std::vector<Member> members = {{1, Role::kSmall, small, 0}, {2, Role::kLarge, large, 0}};
  return DecideTurn({.members = members, .threshold = threshold, .cut_off = cut_off});
}

TEST(DecideTurn, ServesTheLargeSideAtTheThresholdOrWhenTheSmallHasNothing) {
  EXPECT_FALSE(Decide(0, 0, 3).has_value());
  EXPECT_EQ(Decide(5, 2, 3)->worker, 1u);
  EXPECT_EQ(Decide(5, 3, 3)->worker, 2u);
  EXPECT_EQ(Decide(0, 1, 3)->worker, 2u);
  EXPECT_EQ(Decide(5, 0, 1)->worker, 1u);
}

TEST(DecideTurn, AsksTheSmallSideToGiveWayWhenTheThresholdIsReached) {
  EXPECT_EQ(Decide(5, 1, 3)->yield_at_departures, 2);
  EXPECT_EQ(Decide(5, 3, 3)->yield_at_departures, 0) << "the large side needs no such rule";
  const std::vector<Member> alone = {{1, Role::kSmall, 4, 0}};
  EXPECT_EQ(DecideTurn({.members = alone, .threshold = 3})->yield_at_departures, 0);
}

TEST(DecideTurn, LetsTheOtherRoleGoFirstAfterACutOff) {
  EXPECT_EQ(Decide(5, 9, 3, Role::kLarge)->worker, 1u);
  EXPECT_EQ(Decide(5, 1, 3, Role::kSmall)->worker, 2u);
  EXPECT_EQ(Decide(0, 9, 3, Role::kLarge)->worker, 2u) << "nobody else has work";
}

TEST(DecideTurn, ServesTheLongestUnservedOfARole) {
  const std::vector<Member> members = {
      {1, Role::kSmall, 1, 9}, {2, Role::kSmall, 1, 4}, {3, Role::kSmall, 0, 1}};
  EXPECT_EQ(DecideTurn({.members = members, .threshold = 1})->worker, 2u);
}

TEST(SharedThreshold, IsAFractionOfLiveRequestsUnlessSet) {
  CoreOptions options;
  EXPECT_EQ(SharedThreshold(options, 0), 1);
  EXPECT_EQ(SharedThreshold(options, 10), 4);
  EXPECT_EQ(SharedThreshold(options, 11), 5);
  options.shared_threshold = 7;
  EXPECT_EQ(SharedThreshold(options, 0), 7);
}

class TurnLeaseTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kMax = absl::Milliseconds(100);
  const absl::Time start_ = absl::UnixEpoch();
  TurnLease lease_;
};

TEST_F(TurnLeaseTest, EndsByReturnOfItsTurnOnly) {
  lease_.Grant(7, Role::kSmall, 1, start_);
  EXPECT_FALSE(lease_.Return(7, 2, false, kMax, start_));
  EXPECT_FALSE(lease_.Return(8, 1, false, kMax, start_));
  EXPECT_TRUE(lease_.Return(7, 1, false, kMax, start_));
  EXPECT_FALSE(lease_.held());
  EXPECT_FALSE(lease_.Return(7, 1, false, kMax, start_)) << "once";
}

TEST_F(TurnLeaseTest, RemembersACutOffUntilTheNextGrant) {
  lease_.Grant(7, Role::kSmall, 1, start_);
  lease_.Return(7, 1, /*rows_left=*/true, kMax, start_ + absl::Milliseconds(50));
  EXPECT_FALSE(lease_.cut_off().has_value()) << "it gave way on its own";
  lease_.Grant(7, Role::kSmall, 2, start_);
  lease_.Return(7, 2, /*rows_left=*/true, kMax, start_ + kMax);
  EXPECT_EQ(lease_.cut_off(), Role::kSmall);
  lease_.Grant(8, Role::kLarge, 3, start_);
  EXPECT_FALSE(lease_.cut_off().has_value());
}

TEST_F(TurnLeaseTest, ExpiresAndDropsWithItsHolder) {
  lease_.Grant(7, Role::kLarge, 1, start_);
  EXPECT_FALSE(lease_.Expire(kMax, start_ + kMax));
  EXPECT_TRUE(lease_.Expire(kMax, start_ + kMax + absl::Milliseconds(1)));
  EXPECT_FALSE(lease_.held());
  lease_.Grant(7, Role::kLarge, 2, start_);
  EXPECT_FALSE(lease_.Drop(8));
  EXPECT_TRUE(lease_.Drop(7));
  EXPECT_FALSE(lease_.Drop(7));
}

TEST_F(TurnLeaseTest, IsHeldByOneAtATime) {
  lease_.Grant(7, Role::kLarge, 1, start_);
  EXPECT_DEATH(lease_.Grant(8, Role::kSmall, 2, start_), "still held by stream 7");
}

}  // namespace
}  // namespace tokenrouter
