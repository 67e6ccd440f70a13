#include "libs/paging/sequence_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::SizeIs;

constexpr SequenceId kA{1}, kB{2}, kC{3};

class SequenceTablesTest : public testing::Test {
 protected:
  absl::Status Extend(std::vector<SequenceExtension> batch) {
    return tables_.Extend(batch, &copies_);
  }

  SequenceTables tables_{8, 4};
  std::vector<BlockCopy> copies_;
};

TEST_F(SequenceTablesTest, ExtendsAllSequencesOrNone) {
  ASSERT_THAT(Extend({{kA, 5}, {kB, 4}}), IsOk());
  EXPECT_EQ(tables_.unallocated_blocks(), 5);
  EXPECT_THAT(Extend({{kA, 3}, {kB, 17}, {kC, 1}}),
              StatusIs(absl::StatusCode::kResourceExhausted, testing::HasSubstr("6 blocks")));
  EXPECT_EQ(tables_.Length(kA), 5);
  EXPECT_EQ(tables_.Length(kB), 4);
  EXPECT_FALSE(tables_.Contains(kC));
  EXPECT_EQ(tables_.unallocated_blocks(), 5);
}

TEST_F(SequenceTablesTest, BlocksNeededIsExact) {
  const std::vector<SequenceExtension> batch = {{kA, 8}, {kB, 9}};
  EXPECT_EQ(tables_.BlocksNeeded(batch), 5);
  ASSERT_THAT(Extend(batch), IsOk());
  EXPECT_EQ(tables_.unallocated_blocks(), 3);
}

TEST_F(SequenceTablesTest, LastWriterOfASharedBlockNeedsNoCopy) {
  ASSERT_THAT(Extend({{kA, 8}}), IsOk());
  ASSERT_THAT(tables_.Fork(kA, kB, 8, &copies_), IsOk());
  ASSERT_THAT(tables_.Fork(kA, kC, 8, &copies_), IsOk());
  for (const SequenceId id : {kA, kB, kC}) tables_.Truncate(id, 6);
  const std::vector<SequenceExtension> batch = {{kA, 1}, {kB, 1}, {kC, 1}};
  EXPECT_EQ(tables_.BlocksNeeded(batch), 2);
  ASSERT_THAT(Extend(batch), IsOk());
  EXPECT_THAT(copies_, SizeIs(2));
  EXPECT_EQ(tables_.unallocated_blocks(), 4);
}

TEST_F(SequenceTablesTest, ReleaseReturnsEveryBlock) {
  ASSERT_THAT(Extend({{kA, 13}}), IsOk());
  ASSERT_THAT(tables_.Fork(kA, kB, 9, &copies_), IsOk());
  tables_.Release(kA);
  tables_.Release(kA);
  EXPECT_EQ(tables_.Length(kB), 9);
  tables_.Release(kB);
  EXPECT_EQ(tables_.unallocated_blocks(), tables_.total_blocks());
  EXPECT_EQ(tables_.sequences(), 0);
}

TEST_F(SequenceTablesTest, TruncatedToNothingStaysKnown) {
  ASSERT_THAT(Extend({{kA, 3}}), IsOk());
  tables_.Truncate(kA, 0);
  EXPECT_TRUE(tables_.Contains(kA));
  EXPECT_EQ(tables_.unallocated_blocks(), 8);
}

using SequenceTablesDeathTest = SequenceTablesTest;

TEST_F(SequenceTablesDeathTest, BrokenCallsAreChecks) {
  ASSERT_THAT(Extend({{kA, 3}}), IsOk());
  EXPECT_DEATH(tables_.Truncate(kA, 4), "to 4 of 3");
  EXPECT_DEATH(tables_.Truncate(kB, 1), "unknown sequence 2");
  EXPECT_DEATH((void)tables_.Fork(kB, kC, 0, &copies_), "unknown sequence 2");
  EXPECT_DEATH((void)tables_.Fork(kA, kA, 0, &copies_), "sequence 1 exists");
  EXPECT_DEATH((void)Extend({{kA, 1}, {kA, 1}}), "sequence 1 twice");
}

}  // namespace
}  // namespace tokenrouter
