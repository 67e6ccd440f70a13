#include "libs/worker/core/worker_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;

std::vector<TokenId> Ids(std::span<const TokenId> ids) { return {ids.begin(), ids.end()}; }

TEST(WorkerHistoryTest, ReplaceReturnsTheUnchangedPrefix) {
  WorkerHistory track;
  EXPECT_EQ(track.Replace(std::vector<TokenId>{1, 2, 3}, 0, Author::kSmall), 0);
  EXPECT_EQ(track.Replace(std::vector<TokenId>{1, 2, 4, 5}, 1, Author::kLarge), 2);
  EXPECT_THAT(Ids(track.ids()), ElementsAre(1, 2, 4, 5));
  EXPECT_EQ(track.committed(), 3);
  EXPECT_EQ(track.tail_record(0).author, Author::kLarge);
  EXPECT_EQ(track.Replace(std::vector<TokenId>{1}, 0, Author::kLarge), 1);
  EXPECT_EQ(track.size(), 1);
}

TEST(WorkerHistoryTest, ExtendKeepsTheRecordsOfWhatWasTentativeBefore) {
  WorkerHistory track;
  track.Replace(std::vector<TokenId>{1}, 0, Author::kSmall);
  track.AppendTentative({.id = 2, .author = Author::kSmall, .entropy = 0.5f});
  track.AppendTentative({.id = 3, .author = Author::kSmall, .entropy = 0.7f});
  track.Extend(2, std::vector<TokenId>{9}, 2, Author::kLarge);
  EXPECT_THAT(Ids(track.tail()), ElementsAre(2, 9));
  EXPECT_EQ(track.tail_record(0).entropy, 0.5f);
  EXPECT_EQ(track.tail_record(1).author, Author::kLarge);
}

TEST(WorkerHistoryTest, ExtendMayCommitATail) {
  WorkerHistory track;
  track.Replace(std::vector<TokenId>{1}, 0, Author::kSmall);
  track.AppendTentative({.id = 2});
  track.AppendTentative({.id = 3});
  track.Extend(3, std::vector<TokenId>{4}, 0, Author::kLarge);
  EXPECT_EQ(track.committed(), 4);
}

TEST(WorkerHistoryTest, CommitsTheTailFromItsFirstId) {
  WorkerHistory track;
  track.Replace(std::vector<TokenId>{1}, 0, Author::kSmall);
  track.AppendTentative({.id = 2});
  track.AppendTentative({.id = 3});
  track.CommitFirst();
  EXPECT_EQ(track.committed(), 2);
  EXPECT_THAT(Ids(track.tail()), ElementsAre(3));
  track.CutTail(0);
  EXPECT_EQ(track.size(), 2);
}

TEST(WorkerHistoryTest, CountsFollowEveryCutAndAppend) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    WorkerHistory track;
    absl::flat_hash_map<TokenId, int32_t> counts;
    const Position prompt = 3;
    track.Replace(std::vector<TokenId>{1, 1, 1}, 0, Author::kSmall);
    for (int i = 0; i < 100; ++i) {
      const auto base = static_cast<Position>(prompt + random() % (track.size() - prompt + 1));
      std::vector<TokenId> ids;
      for (size_t n = random() % 5; n > 0; --n) ids.push_back(random() % 4);
      switch (random() % 4) {
        case 0:
          track.CutTail(static_cast<int32_t>(random() % (track.tail().size() + 1)));
          [[fallthrough]];
        case 1:
          for (const TokenId id : ids) track.AppendTentative({.id = id});
          break;
        case 2:
          while (random() % 2 == 0 && !track.tail().empty()) track.CommitFirst();
          break;
        default:
          track.Extend(base, ids, random() % 2 == 0 ? static_cast<int32_t>(ids.size()) : 0,
                       Author::kSmall);
      }
      const auto until = static_cast<Position>(prompt + random() % (track.size() - prompt + 1));
      if (random() % 3 == 0) continue;  // Several changes between two counts.
      track.UpdateCounts(prompt, until, &counts);
      absl::flat_hash_map<TokenId, int32_t> expected;
      for (Position p = prompt; p < until; ++p) ++expected[track.ids()[p]];
      ASSERT_EQ(counts, expected);
    }
  }
}

}  // namespace
}  // namespace tokenrouter
