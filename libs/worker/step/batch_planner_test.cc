#include "libs/worker/step/batch_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

RowSnapshot Ready(Position known, Position in_kv, uint64_t last_step = 0, int32_t choices = 1) {
  return {
      .known = known, .in_kv = in_kv, .choices = choices, .ready = true, .last_step = last_step};
}
RowSnapshot Idle(Position known, Position in_kv) {
  return {.known = known, .in_kv = in_kv, .choices = 0, .ready = false, .last_step = 0};
}

StepBudget Budget(int64_t tokens, int32_t rows = 64, int64_t free_blocks = 100000) {
  return {.max_rows = rows,
          .max_step_tokens = tokens,
          .idle_step_tokens = 64,
          .block_size = 4,
          .free_blocks = free_blocks,
          .idle_reserve_blocks = 0};
}

std::vector<int32_t> IdsByRow(const BatchPlan& plan, size_t rows) {
  std::vector<int32_t> ids(rows, 0);
  for (const PlannedRow& row : plan.rows) ids[row.index] = row.new_ids;
  return ids;
}

TEST(BatchPlannerTest, EveryDecodeRowRunsBesideAChunkOfThePrompt) {
  const RowSnapshot rows[] = {Ready(1000, 0), Ready(11, 10), Ready(21, 20)};
  const BatchPlan plan = PlanBatch(rows, Budget(100));
  EXPECT_THAT(IdsByRow(plan, 3), ElementsAre(98, 1, 1));
  EXPECT_EQ(plan.rows[2].choices, 0);  // The prompt's chunk does not reach its end.
  EXPECT_EQ(plan.rows[0].choices, 1);
}

TEST(BatchPlannerTest, PromptsShareWhatIsLeft) {
  const RowSnapshot rows[] = {Ready(1000, 0), Ready(1000, 0), Ready(50, 0)};
  EXPECT_THAT(IdsByRow(PlanBatch(rows, Budget(300)), 3), ElementsAre(125, 125, 50));
}

TEST(BatchPlannerTest, TheLeastRecentlyRunPromptGoesFirstWhenSharesAreTooSmall) {
  const RowSnapshot rows[] = {Ready(1000, 8, 5), Ready(1000, 8, 3), Ready(1000, 8, 4)};
  EXPECT_THAT(IdsByRow(PlanBatch(rows, Budget(65)), 3), ElementsAre(0, 32, 33));
}

TEST(BatchPlannerTest, DecodeRowsLeaveAQuarterForAWaitingPrompt) {
  std::vector<RowSnapshot> rows(200, Ready(11, 10));
  rows.push_back(Ready(1000, 0));
  const BatchPlan plan = PlanBatch(rows, Budget(100, /*rows=*/500));
  EXPECT_THAT(plan.rows, SizeIs(76));
  EXPECT_EQ(plan.rows.back().new_ids, 25);
}

TEST(BatchPlannerTest, NeverMoreThanMaxRows) {
  std::vector<RowSnapshot> rows(9, Ready(11, 10));
  rows.push_back(Ready(1000, 0));
  const BatchPlan plan = PlanBatch(rows, Budget(1000, /*rows=*/4));
  EXPECT_THAT(plan.rows, SizeIs(4));
  EXPECT_EQ(plan.rows.back().index, 9u);
}

TEST(BatchPlannerTest, AChunkNeverCutsThroughTheChoices) {
  const RowSnapshot rows[] = {Ready(100, 0, 0, /*choices=*/10)};
  EXPECT_THAT(IdsByRow(PlanBatch(rows, Budget(95)), 1), ElementsAre(90));
  const RowSnapshot rest[] = {Ready(100, 90, 0, /*choices=*/10)};
  EXPECT_EQ(PlanBatch(rest, Budget(95)).rows[0].choices, 10);
}

TEST(BatchPlannerTest, RowsWithoutBlocksAreStarvedOthersRun) {
  const RowSnapshot rows[] = {Ready(9, 8), Ready(11, 10)};
  const BatchPlan plan = PlanBatch(rows, Budget(100, 64, /*free_blocks=*/0));
  EXPECT_THAT(plan.starved, ElementsAre(0));
  EXPECT_THAT(IdsByRow(plan, 2), ElementsAre(0, 1));
}

TEST(BatchPlannerTest, APromptStartsOnlyWhenAllOfItFitsBesideTheOthers) {
  const RowSnapshot rows[] = {Ready(10, 9), Ready(100, 0)};
  EXPECT_THAT(PlanBatch(rows, Budget(60, 64, /*free_blocks=*/25)).starved, ElementsAre(1));
  EXPECT_THAT(PlanBatch(rows, Budget(60, 64, /*free_blocks=*/26)).starved, IsEmpty());
  // Ready rows that this step has no capacity for count too.
  const RowSnapshot more[] = {Ready(10, 9), Ready(10, 9), Ready(10, 9), Ready(100, 0)};
  EXPECT_THAT(PlanBatch(more, Budget(60, 2, /*free_blocks=*/27)).starved, ElementsAre(3));
  EXPECT_THAT(PlanBatch(more, Budget(60, 2, /*free_blocks=*/28)).starved, IsEmpty());
}

// Otherwise nothing would ever change, since the next step would be planned from the same snapshot.
TEST(BatchPlannerTest, AnEmptyPlanNamesEveryReadyRowAsStarved) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    std::vector<RowSnapshot> rows;
    for (size_t i = 0; i < 1 + random() % 12; ++i) {
      const auto known = static_cast<Position>(1 + random() % 200);
      rows.push_back(Ready(known, random() % 2 == 0 ? 0 : random() % known, random() % 9));
    }
    const BatchPlan plan = PlanBatch(rows, Budget(65, 1 + random() % 4, random() % 4));
    EXPECT_TRUE(!plan.rows.empty() || plan.starved.size() == rows.size()) << "seed " << seed;
  }
}

TEST(BatchPlannerTest, ByAgeNoRowTakesABlockThatAnOlderRowLacks) {
  RowSnapshot rows[] = {Ready(40, 0), Ready(13, 12), Ready(11, 10), Ready(9, 0)};
  for (size_t i = 0; i < 4; ++i) rows[i].age = i;
  StepBudget budget = Budget(100, /*rows=*/64, /*free_blocks=*/9);
  budget.by_age = true;
  const BatchPlan plan = PlanBatch(rows, budget);
  // The oldest needs ten blocks. The second needs a new one, the third has space in its last one.
  EXPECT_THAT(IdsByRow(plan, 4), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(plan.starved, ElementsAre(0, 1, 3));
}

// Dropping another's KV would not give it the tokens that it lacks.
TEST(BatchPlannerTest, ByAgeARowThatLacksTokensIsNotStarvedOfBlocks) {
  struct Case {
    RowSnapshot last;
    int32_t its_ids;
  };
  const Case cases[] = {
      {Ready(40, 30, 0, /*choices=*/10), 0},  // All that it has left are its choices.
      {Ready(40, 20, 0, /*choices=*/10), 5},  // A part of what comes before them fits.
      {Ready(40, 35, 0, /*choices=*/5), 5},
  };
  for (const Case& c : cases) {
    // The third could run without a new block, the fourth could not.
    RowSnapshot rows[] = {Ready(60, 0), c.last, Ready(11, 10), Ready(13, 12)};
    for (size_t i = 0; i < 4; ++i) rows[i].age = i;
    StepBudget budget = Budget(65);
    budget.by_age = true;
    const BatchPlan plan = PlanBatch(rows, budget);
    EXPECT_THAT(plan.starved, IsEmpty());
    EXPECT_THAT(IdsByRow(plan, 4), ElementsAre(60, c.its_ids, c.its_ids == 0 ? 1 : 0, 0));
  }
}

TEST(BatchPlannerTest, CatchesUpOnlyWhenNothingIsReady) {
  const RowSnapshot idle[] = {Idle(100, 0), Idle(30, 30)};
  const BatchPlan plan = PlanBatch(idle, Budget(512));
  EXPECT_TRUE(plan.idle);
  EXPECT_THAT(IdsByRow(plan, 2), ElementsAre(64, 0));
  EXPECT_EQ(plan.background_ids, 36);
  const RowSnapshot busy[] = {Idle(100, 0), Ready(30, 29)};
  EXPECT_THAT(IdsByRow(PlanBatch(busy, Budget(512)), 2), ElementsAre(0, 1));
  EXPECT_EQ(PlanBatch(busy, Budget(512)).background_ids, 100);
}

TEST(BatchPlannerTest, PrefillsInBackgroundBesideReadyRowsButNothingIsDroppedForIt) {
  const RowSnapshot rows[] = {Idle(100, 0), Ready(30, 29), Idle(30, 30)};
  StepBudget budget = Budget(512);
  budget.background_prefill = true;
  const BatchPlan plan = PlanBatch(rows, budget);
  EXPECT_THAT(IdsByRow(plan, 3), ElementsAre(100, 1, 0));
  EXPECT_EQ(plan.rows.back().choices, 0);
  EXPECT_EQ(plan.background_ids, 0);
  budget.free_blocks = 3;
  const BatchPlan short_plan = PlanBatch(rows, budget);
  EXPECT_THAT(IdsByRow(short_plan, 3), ElementsAre(0, 1, 0));
  EXPECT_THAT(short_plan.starved, IsEmpty());
}

TEST(BatchPlannerTest, CatchingUpLeavesTheReserve) {
  const RowSnapshot idle[] = {Idle(kBackgroundIds, 0)};
  StepBudget budget = Budget(512, 64, /*free_blocks=*/kBackgroundIds / 4 + 2);
  budget.idle_reserve_blocks = 3;
  EXPECT_THAT(PlanBatch(idle, budget).rows, IsEmpty());
  budget.idle_reserve_blocks = 2;
  EXPECT_THAT(PlanBatch(idle, budget).rows, SizeIs(1));
  const RowSnapshot little[] = {Idle(100, 100 - kBackgroundIds + 1)};
  EXPECT_THAT(PlanBatch(little, budget).rows, IsEmpty());
  EXPECT_EQ(PlanBatch(little, budget).background_ids, 0) << "no later step catches up by itself";
}

TEST(BatchPlannerTest, AnyPlanKeepsEveryBudgetAndEveryRowMovesOnInTime) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    std::vector<RowSnapshot> rows;
    for (size_t i = 0; i < 1 + random() % 20; ++i) {
      const auto known = static_cast<Position>(1 + random() % 400);
      const auto choices = static_cast<int32_t>(1 + random() % std::min(known, 33));
      const auto in_kv = static_cast<Position>(random() % (known - choices + 1));
      rows.push_back(Ready(known, in_kv, random() % 9, choices));
    }
    const StepBudget budget = Budget(65 + random() % 200, 1 + random() % 8);
    uint64_t step = 10;
    // Rows that reach their end write a token; all must have done so within a bounded time.
    std::vector<int> written(rows.size(), 0);
    for (int i = 0; i < 400; ++i) {
      const BatchPlan plan = PlanBatch(rows, budget);
      EXPECT_THAT(plan.starved, IsEmpty());
      EXPECT_LE(plan.rows.size(), static_cast<size_t>(budget.max_rows));
      int64_t ids = 0;
      ++step;
      for (const PlannedRow& row : plan.rows) {
        ids += row.new_ids;
        RowSnapshot& snapshot = rows[row.index];
        EXPECT_GT(row.new_ids, 0);
        EXPECT_TRUE(row.choices == 0 || row.choices == snapshot.choices);
        EXPECT_EQ(row.choices > 0, snapshot.in_kv + row.new_ids == snapshot.known);
        snapshot.in_kv += row.new_ids;
        snapshot.last_step = step;
        if (row.choices == 0) continue;
        snapshot.known += 1;
        snapshot.choices = 1;
        ++written[row.index];
      }
      EXPECT_LE(ids, budget.max_step_tokens);
    }
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_GT(written[i], 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tokenrouter
