#include "services/scheduler/workers/lease_policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace tokenrouter {
namespace {

using Member = LeaseSnapshot::Member;

using Kind = BatchingPolicy::Kind;

constexpr absl::Duration kMax = absl::Milliseconds(100);
const absl::Time kNow = absl::UnixEpoch() + absl::Seconds(1);

LeaseSnapshot::Member MemberOf(StreamId worker, Role role, int ready) {
  return {.worker = worker,
          .role = role,
          .ready = ready,
          .oldest = kNow - absl::Milliseconds(3),
          .step = absl::Milliseconds(role == Role::kSmall ? 5 : 20)};
}

std::optional<LeaseDecision> DecideAmong(std::vector<Member> members, BatchingPolicy policy,
                                         std::optional<Role> cut_off = std::nullopt) {
  return DecideLease(
      {.now = kNow, .members = members, .policy = policy, .max = kMax, .cut_off = cut_off});
}

std::optional<LeaseDecision> Decide(int small, int large, BatchingPolicy policy,
                                    std::optional<Role> cut_off = std::nullopt) {
  return DecideAmong({MemberOf(1, Role::kSmall, small), MemberOf(2, Role::kLarge, large)}, policy,
                     cut_off);
}

BatchingPolicy Threshold(int m) { return {.kind = Kind::kModel, .m_large = m}; }

TEST(DecideLease, ServesTheLargeSideAtTheThresholdOrWhenTheSmallHasNothing) {
  EXPECT_FALSE(Decide(0, 0, Threshold(3)).has_value());
  for (const Kind kind : {Kind::kModel, Kind::kStatic}) {
    const BatchingPolicy policy = {.kind = kind, .m_large = 3};
    EXPECT_EQ(Decide(5, 2, policy)->worker, 1u);
    EXPECT_EQ(Decide(5, 3, policy)->worker, 2u);
    EXPECT_EQ(Decide(5, 3, policy)->outcome, WaitOutcome::kSize);
    EXPECT_EQ(Decide(0, 1, policy)->worker, 2u);
    EXPECT_EQ(Decide(0, 1, policy)->outcome, WaitOutcome::kIdle);
  }
  EXPECT_EQ(Decide(5, 0, Threshold(1))->worker, 1u);
}

TEST(DecideLease, AsksTheHolderToYieldWhenThePolicyCouldDecideOtherwise) {
  EXPECT_EQ(Decide(5, 1, Threshold(3))->yield_at_handoffs, 2);
  EXPECT_EQ(Decide(5, 4, Threshold(3))->yield_at_handoffs, 2)
      << "two rows are left, fewer than three";
  EXPECT_EQ(Decide(0, 1, Threshold(3))->yield_at_handoffs, 1) << "then the small side has work";
  EXPECT_EQ(DecideAmong({MemberOf(1, Role::kSmall, 4)}, Threshold(3))->yield_at_handoffs, 0);
}

TEST(DecideLease, IsGreedyForTheLargeSide) {
  const BatchingPolicy greedy = {.kind = Kind::kGreedy};
  EXPECT_EQ(Decide(9, 1, greedy)->worker, 2u);
  EXPECT_EQ(Decide(9, 1, greedy)->yield_at_handoffs, 0);
  EXPECT_EQ(Decide(9, 0, greedy)->worker, 1u);
  EXPECT_EQ(Decide(9, 0, greedy)->yield_at_handoffs, 1);
}

TEST(DecideLease, WaitsForAFixedTime) {
  const BatchingPolicy wait = {.kind = Kind::kFixedWait, .wait_large_ms = 10};
  const auto small = Decide(9, 1, wait);  // Its row has waited 3 ms.
  EXPECT_EQ(small->worker, 1u);
  EXPECT_EQ(small->max, absl::Milliseconds(2)) << "7 ms are left, a small step takes 5";
  EXPECT_EQ(small->yield_at_handoffs, 0);
  EXPECT_EQ(Decide(9, 0, wait)->yield_at_handoffs, 1) << "the wait begins with the first row";
  const auto large = Decide(9, 1, {.kind = Kind::kFixedWait, .wait_large_ms = 3});
  EXPECT_EQ(large->worker, 2u);
  EXPECT_EQ(large->outcome, WaitOutcome::kTimer);
}

TEST(DecideLease, ServesTheLongerQueue) {
  const BatchingPolicy longest = {.kind = Kind::kLongestQueue};
  EXPECT_EQ(Decide(6, 3, longest)->worker, 1u);
  EXPECT_EQ(Decide(6, 3, longest)->yield_at_handoffs, 2) << "queues of 4 and 5";
  EXPECT_EQ(Decide(4, 4, longest)->worker, 2u);
  EXPECT_EQ(Decide(4, 7, longest)->yield_at_handoffs, 2) << "queues of 5 and 6";
}

TEST(DecideLease, LetsTheOtherRoleGoFirstAfterACutOff) {
  EXPECT_EQ(Decide(5, 9, Threshold(3), Role::kLarge)->worker, 1u);
  EXPECT_EQ(Decide(5, 1, Threshold(3), Role::kSmall)->worker, 2u);
  EXPECT_EQ(Decide(5, 1, Threshold(3), Role::kSmall)->outcome, WaitOutcome::kBound);
  EXPECT_EQ(Decide(0, 9, Threshold(3), Role::kLarge)->worker, 2u) << "no other member has work";
}

TEST(DecideLease, ServesTheLongestUnservedOfARole) {
  std::vector<Member> members = {MemberOf(1, Role::kSmall, 1), MemberOf(2, Role::kSmall, 1),
                                 MemberOf(3, Role::kSmall, 0)};
  members[0].last_lease = 9;
  members[1].last_lease = 4;
  members[2].last_lease = 1;
  EXPECT_EQ(DecideAmong(members, Threshold(1))->worker, 2u);
}

TEST(DecideLease, ServesUrgentRowsInTime) {
  std::vector<Member> members = {MemberOf(1, Role::kSmall, 5), MemberOf(2, Role::kLarge, 1)};
  members[1].serve_by = kNow + absl::Milliseconds(30);
  const auto small = DecideAmong(members, Threshold(4));
  EXPECT_EQ(small->worker, 1u);
  EXPECT_EQ(small->max, absl::Milliseconds(25)) << "its last step may begin just before the end";
  members[1].serve_by = kNow + absl::Milliseconds(5);  // Another small step would be too long.
  const auto large = DecideAmong(members, Threshold(4));
  EXPECT_EQ(large->worker, 2u);
  EXPECT_EQ(large->outcome, WaitOutcome::kBound);
  members[0].serve_by = kNow + absl::Milliseconds(2);
  EXPECT_EQ(DecideAmong(members, Threshold(4))->worker, 1u) << "its row is more urgent still";
  EXPECT_EQ(DecideAmong(members, Threshold(4))->max, kShortestLease);
}

class HeldLeaseTest : public ::testing::Test {
 protected:
  const absl::Time start_ = absl::UnixEpoch();
  HeldLease lease_;
};

TEST_F(HeldLeaseTest, EndsByReturnOfItsLeaseOnly) {
  lease_.Grant(7, Role::kSmall, 1, kMax, start_);
  EXPECT_FALSE(lease_.Return(7, 2, false, start_));
  EXPECT_FALSE(lease_.Return(8, 1, false, start_));
  EXPECT_TRUE(lease_.Return(7, 1, false, start_));
  EXPECT_FALSE(lease_.held());
  EXPECT_FALSE(lease_.Return(7, 1, false, start_)) << "a lease is returned once";
}

TEST_F(HeldLeaseTest, RemembersACutOffOfTheLargeSideUntilTheNextGrant) {
  lease_.Grant(7, Role::kLarge, 1, kMax, start_);
  lease_.Return(7, 1, /*rows_left=*/true, start_ + absl::Milliseconds(50));
  EXPECT_FALSE(lease_.cut_off().has_value()) << "it yielded by itself";
  lease_.Grant(7, Role::kLarge, 2, kMax, start_);
  lease_.Return(7, 2, /*rows_left=*/true, start_ + kMax);
  EXPECT_EQ(lease_.cut_off(), Role::kLarge);
  lease_.Grant(8, Role::kSmall, 3, kMax, start_);
  EXPECT_FALSE(lease_.cut_off().has_value());
  lease_.Return(8, 3, /*rows_left=*/true, start_ + kMax);
  EXPECT_FALSE(lease_.cut_off().has_value()) << "the small side may go on";
}

TEST_F(HeldLeaseTest, IsOnlyEverShortened) {
  lease_.Grant(7, Role::kSmall, 1, kMax, start_);
  lease_.Shorten(start_ + absl::Milliseconds(40));
  EXPECT_EQ(lease_.ends(), start_ + absl::Milliseconds(40));
  lease_.Shorten(start_ + absl::Milliseconds(60));
  EXPECT_EQ(lease_.ends(), start_ + absl::Milliseconds(40));
}

TEST_F(HeldLeaseTest, ExpiresAndDropsWithItsHolder) {
  lease_.Grant(7, Role::kLarge, 1, kMax, start_);
  EXPECT_FALSE(lease_.Expire(kMax, start_ + kMax));
  EXPECT_TRUE(lease_.Expire(kMax, start_ + kMax + absl::Milliseconds(1)));
  EXPECT_FALSE(lease_.held());
  lease_.Grant(7, Role::kLarge, 2, kMax, start_);
  EXPECT_FALSE(lease_.Drop(8));
  EXPECT_TRUE(lease_.Drop(7));
  EXPECT_FALSE(lease_.Drop(7));
}

TEST_F(HeldLeaseTest, IsHeldByOneAtATime) {
  lease_.Grant(7, Role::kLarge, 1, kMax, start_);
  EXPECT_DEATH(lease_.Grant(8, Role::kSmall, 2, kMax, start_), "still held by stream 7");
}

}  // namespace
}  // namespace tokenrouter
