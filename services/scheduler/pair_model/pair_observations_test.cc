#include "services/scheduler/pair_model/pair_observations.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

TEST(PairObservationsTest, AnAnswerIsAsLongAsItsLimitUntilOneHasFinished) {
  PairObservations seen;
  EXPECT_EQ(seen.lengths().Answer(), 0);
  seen.ObserveBegun(/*uncomputed_ids=*/30, /*most_tokens=*/100);
  seen.ObserveBegun(/*uncomputed_ids=*/50, /*most_tokens=*/200);
  EXPECT_DOUBLE_EQ(seen.lengths().uncomputed, 40) << "the first ones weigh the same";
  EXPECT_DOUBLE_EQ(seen.lengths().Answer(), 150);
  seen.ObserveFinished(20);
  EXPECT_DOUBLE_EQ(seen.lengths().Answer(), 20);
}

TEST(PairObservationsTest, ARowThatHandsOffIsAStepOfItsSide) {
  PairObservations seen;
  seen.ObserveRows(Role::kSmall, 0, 5);
  EXPECT_GT(seen.routed().effective_trials(), 0);
  EXPECT_EQ(seen.returned().effective_trials(), 0);
}

TEST(PairObservationsTest, IgnoresStepsOfNothingAndLatenciesBelowZero) {
  PairObservations seen;
  seen.ObserveStep(Role::kLarge, 0, 4, absl::Milliseconds(5));
  seen.ObserveStep(Role::kLarge, 4, 0, absl::Milliseconds(5));
  EXPECT_EQ(seen.curve(Role::kLarge).observations(), 0);
  seen.ObserveHandoff(-absl::Milliseconds(5));
  EXPECT_EQ(seen.handoff_latency(), absl::ZeroDuration());
}

TEST(PairObservationsTest, NoLongestStepIsNoLimit) {
  PairObservations seen;
  seen.SetTopology(true, absl::Milliseconds(7));
  EXPECT_EQ(seen.topology().max_step_ms, 7);
  seen.SetTopology(true, absl::InfiniteDuration());
  EXPECT_EQ(seen.topology().max_step_ms, 0);
}

}  // namespace
}  // namespace tokenrouter
