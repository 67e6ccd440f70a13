#include "libs/sampling/row_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace tokenrouter {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Few distinct values, so that ties are everywhere.
std::vector<float> TiedRow(int64_t ids, uint64_t seed, int values) {
  std::mt19937_64 random(seed);
  std::vector<float> row(ids);
  for (float& x : row) {
    x = random() % 10 == 0 ? -kInfinity : static_cast<float>(random() % values) - 3.0f;
  }
  return row;
}

std::vector<RowEntry> Sorted(std::span<const float> row) {
  std::vector<RowEntry> entries;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] > -kInfinity) entries.push_back({static_cast<TokenId>(i), row[i]});
  }
  std::sort(entries.begin(), entries.end(), Before);
  return entries;
}

TEST(RowScanTest, ArgmaxIsTheLowestIdOnTies) {
  std::vector<float> row(500, 1.0f);
  row[70] = row[200] = row[499] = 2.0f;
  RowScan scan;
  scan.Read(row);
  EXPECT_EQ(scan.argmax(), 70);
  EXPECT_EQ(scan.max(), 2.0f);
}

TEST(RowScanTest, FindsTheLargestIdsWithTiesByLowestId) {
  for (const int64_t ids : {1, 64, 65, 777, 5000}) {
    for (const int values : {2, 50, 100000}) {
      const std::vector<float> row = TiedRow(ids, ids + values, values);
      const std::vector<RowEntry> sorted = Sorted(row);
      RowScan scan;
      scan.Read(row);
      std::vector<RowEntry> found;
      for (const int64_t count : {1, 2, 5, 64, 100, 6000}) {
        scan.FindLargest(count, &found);
        const size_t expected = std::min<size_t>(count, sorted.size());
        ASSERT_EQ(found.size(), expected);
        if (expected == 0) continue;
        EXPECT_EQ(found.back(), sorted[expected - 1]);
        std::sort(found.begin(), found.end(), Before);
        EXPECT_TRUE(std::equal(found.begin(), found.end(), sorted.begin()));
      }
    }
  }
}

TEST(RowScanTest, CollectsValuesFromABoundOn) {
  const std::vector<float> row = {1, -kInfinity, 3, 2, 2};
  RowScan scan;
  scan.Read(row);
  std::vector<float> values;
  scan.CollectValues(2.0f, &values);
  EXPECT_THAT(values, testing::ElementsAre(3, 2, 2));
  scan.CollectValues(-kInfinity, &values);
  EXPECT_THAT(values, testing::ElementsAre(1, 3, 2, 2));
}

TEST(RowScanTest, FindsAValueByItsOrdinal) {
  const std::vector<float> row = {1, 2, 1, 1};
  RowScan scan;
  scan.Read(row);
  EXPECT_EQ(scan.FindValue(1.0f, 1), 0);
  EXPECT_EQ(scan.FindValue(1.0f, 3), 3);
  EXPECT_EQ(scan.FindValue(1.0f, 9), 3);
  EXPECT_EQ(scan.FindValue(1.5f, 1), -1);
}

}  // namespace
}  // namespace tokenrouter
