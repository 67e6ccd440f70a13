#include "libs/worker/step/preemption_policy.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

VictimCandidate Waiting(uint64_t last_step, uint64_t age) {
  return {.holds_kv = true, .ready = false, .last_step = last_step, .age = age};
}
VictimCandidate Running(uint64_t age) {
  return {.holds_kv = true, .ready = true, .last_step = 100, .age = age};
}

TEST(PreemptionPolicyTest, TheLongestIdleGoesFirst) {
  const VictimCandidate candidates[] = {Running(1), Waiting(7, 2), Waiting(3, 3), Running(4)};
  EXPECT_EQ(ChooseVictim(candidates, 0), 2u);
}

TEST(PreemptionPolicyTest, ThenTheYoungestThatRuns) {
  const VictimCandidate candidates[] = {Running(1), Running(5), Running(4)};
  EXPECT_EQ(ChooseVictim(candidates, 0), 1u);
}

TEST(PreemptionPolicyTest, NoOlderSequenceIsDroppedForAYoungerOne) {
  const VictimCandidate candidates[] = {Running(1), Running(2), Running(3)};
  EXPECT_EQ(ChooseVictim(candidates, 2), std::nullopt);
  EXPECT_EQ(ChooseVictim(candidates, 1), 2u);
}

TEST(PreemptionPolicyTest, NeverTheOneInNeedNorOneWithoutKv) {
  VictimCandidate candidates[] = {Running(3), Waiting(0, 1), Waiting(1, 2)};
  candidates[1].holds_kv = false;
  EXPECT_EQ(ChooseVictim(candidates, 2), 0u);
}

}  // namespace
}  // namespace tokenrouter
