#include "libs/paging/block_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

TEST(BlockPoolTest, HandsOutEachBlockOnce) {
  BlockPool pool(5);
  std::vector<BlockId> blocks;
  ASSERT_THAT(pool.Allocate(3, &blocks), IsOk());
  ASSERT_THAT(pool.Allocate(2, &blocks), IsOk());
  EXPECT_EQ(std::set<BlockId>(blocks.begin(), blocks.end()), (std::set<BlockId>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pool.unallocated(), 0);
  EXPECT_EQ(pool.total(), 5);
}

TEST(BlockPoolTest, TakesNothingWhenTooFewAreFree) {
  BlockPool pool(2);
  std::vector<BlockId> blocks;
  EXPECT_THAT(pool.Allocate(3, &blocks),
              StatusIs(absl::StatusCode::kResourceExhausted, testing::HasSubstr("3 blocks")));
  EXPECT_TRUE(blocks.empty());
  EXPECT_EQ(pool.unallocated(), 2);
}

TEST(BlockPoolTest, ZeroBlocksAlwaysSucceed) {
  BlockPool pool(0);
  std::vector<BlockId> blocks;
  EXPECT_THAT(pool.Allocate(0, &blocks), IsOk());
  EXPECT_TRUE(blocks.empty());
}

TEST(BlockPoolTest, FreesABlockWithItsLastReference) {
  BlockPool pool(1);
  std::vector<BlockId> blocks;
  ASSERT_THAT(pool.Allocate(1, &blocks), IsOk());
  pool.AddReference(blocks[0]);
  EXPECT_TRUE(pool.shared(blocks[0]));
  pool.Release(blocks[0]);
  EXPECT_EQ(pool.unallocated(), 0);
  pool.Release(blocks[0]);
  EXPECT_EQ(pool.unallocated(), 1);
}

TEST(BlockPoolTest, CountsBlocksWithoutAnotherKindOfReferenceAsReclaimable) {
  BlockPool pool(2);
  std::vector<BlockId> blocks;
  ASSERT_THAT(pool.Allocate(2, &blocks), IsOk());
  pool.MarkReclaimable(blocks[0]);
  EXPECT_EQ(pool.reclaimable(), 1);
  pool.AddReference(blocks[0]);
  EXPECT_EQ(pool.reclaimable(), 0);
  pool.Release(blocks[0]);
  EXPECT_EQ(pool.reclaimable(), 1);
  pool.ReleaseReclaimable(blocks[0]);
  EXPECT_EQ(pool.reclaimable(), 0);
  EXPECT_EQ(pool.unallocated(), 1);
}

TEST(BlockPoolDeathTest, DoubleReleaseIsACheck) {
  BlockPool pool(1);
  std::vector<BlockId> blocks;
  ASSERT_THAT(pool.Allocate(1, &blocks), IsOk());
  pool.Release(blocks[0]);
  EXPECT_DEATH(pool.Release(blocks[0]), "free already");
  EXPECT_DEATH(pool.AddReference(blocks[0]), "is free");
  EXPECT_DEATH(pool.Release(7), "block 7 of 1");
}

}  // namespace
}  // namespace tokenrouter
