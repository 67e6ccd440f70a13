#include "libs/paging/block_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BlockTableTest : public testing::Test {
 protected:
  BlockPool pool_{8};
  std::vector<BlockCopy> copies_;
};

TEST_F(BlockTableTest, FillsBlocksInOrder) {
  BlockTable table(4);
  ASSERT_THAT(table.Extend(3, &pool_, &copies_), IsOk());
  ASSERT_THAT(table.Extend(3, &pool_, &copies_), IsOk());
  EXPECT_EQ(table.length(), 6);
  ASSERT_EQ(table.blocks().size(), 2u);
  EXPECT_EQ(table.open_block(), table.blocks()[1]);
  EXPECT_THAT(copies_, IsEmpty());
}

TEST_F(BlockTableTest, TruncateReturnsWholeBlocksOnly) {
  BlockTable table(4);
  ASSERT_THAT(table.Extend(9, &pool_, &copies_), IsOk());
  table.Truncate(5, &pool_);
  EXPECT_EQ(pool_.unallocated(), 6);
  table.Truncate(4, &pool_);
  EXPECT_EQ(pool_.unallocated(), 7);
  table.Truncate(0, &pool_);
  EXPECT_EQ(pool_.unallocated(), 8);
}

TEST_F(BlockTableTest, ChangesNothingWhenThePoolIsEmpty) {
  BlockTable table(4);
  ASSERT_THAT(table.Extend(30, &pool_, &copies_), IsOk());
  EXPECT_THAT(table.Extend(3, &pool_, &copies_), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(table.length(), 30);
  EXPECT_EQ(table.blocks().size(), 8u);
  EXPECT_THAT(table.Extend(2, &pool_, &copies_), IsOk());
}

TEST_F(BlockTableTest, ForkSharesWholeBlocksAndCopiesThePart) {
  BlockTable parent(4), child(4);
  ASSERT_THAT(parent.Extend(10, &pool_, &copies_), IsOk());
  ASSERT_THAT(parent.Fork(6, &pool_, &child, &copies_), IsOk());
  EXPECT_EQ(child.blocks()[0], parent.blocks()[0]);
  EXPECT_NE(child.blocks()[1], parent.blocks()[1]);
  EXPECT_THAT(copies_, ElementsAre(BlockCopy{parent.blocks()[1], child.blocks()[1], 2}));
  EXPECT_EQ(pool_.unallocated(), 4);
}

TEST_F(BlockTableTest, ForkTakesNothingWhenThePoolIsEmpty) {
  BlockTable parent(4), child(4);
  ASSERT_THAT(parent.Extend(31, &pool_, &copies_), IsOk());
  EXPECT_THAT(parent.Fork(6, &pool_, &child, &copies_),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(child.length(), 0);
  EXPECT_FALSE(pool_.shared(parent.blocks()[0]));
  EXPECT_THAT(parent.Fork(28, &pool_, &child, &copies_), IsOk());
}

TEST_F(BlockTableTest, ExtendCopiesASharedBlockBeforeItIsWritten) {
  BlockTable parent(4), child(4);
  ASSERT_THAT(parent.Extend(8, &pool_, &copies_), IsOk());
  ASSERT_THAT(parent.Fork(8, &pool_, &child, &copies_), IsOk());
  EXPECT_THAT(copies_, IsEmpty());
  const BlockId shared = parent.blocks()[1];
  child.Truncate(7, &pool_);
  ASSERT_THAT(child.Extend(1, &pool_, &copies_), IsOk());
  EXPECT_THAT(copies_, ElementsAre(BlockCopy{shared, child.blocks()[1], 3}));
  EXPECT_EQ(parent.blocks()[1], shared);
  EXPECT_FALSE(pool_.shared(shared));
}

TEST_F(BlockTableTest, ExtendByNothingCopiesNothing) {
  BlockTable parent(4), child(4);
  ASSERT_THAT(parent.Extend(8, &pool_, &copies_), IsOk());
  ASSERT_THAT(parent.Fork(8, &pool_, &child, &copies_), IsOk());
  child.Truncate(7, &pool_);
  ASSERT_THAT(child.Extend(0, &pool_, &copies_), IsOk());
  EXPECT_THAT(copies_, IsEmpty());
}

}  // namespace
}  // namespace tokenrouter
