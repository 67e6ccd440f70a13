#include "libs/worker/cache/prefix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace tokenrouter {
namespace {

using Ids = std::vector<TokenId>;
constexpr SequenceId kA{1}, kB{2}, kC{3};

TEST(PrefixIndexTest, FindsTheLongestPrefixOfFullBlocks) {
  PrefixIndex index(2);
  index.Extend(kA, "", Ids{1, 2, 3, 4, 5});
  EXPECT_EQ(index.Blocks(kA), 2);
  EXPECT_EQ(index.Find("", Ids{1, 2, 3, 4, 5, 6}).blocks, 2);
  EXPECT_EQ(index.Find("", Ids{1, 2, 3, 4}).holder, kA);
  EXPECT_EQ(index.Find("", Ids{1, 2, 3}).blocks, 1);
  EXPECT_EQ(index.Find("", Ids{1, 2, 9, 4}).blocks, 1);
  EXPECT_EQ(index.Find("", Ids{9, 2, 3, 4}).blocks, 0);
  EXPECT_EQ(index.Find("", Ids{}).blocks, 0);
}

TEST(PrefixIndexTest, TheSameIdsAfterOtherIdsAreAnotherBlock) {
  PrefixIndex index(2);
  index.Extend(kA, "", Ids{1, 2, 3, 4});
  EXPECT_EQ(index.Find("", Ids{3, 4}).blocks, 0);
  index.Extend(kB, "", Ids{5, 6, 3, 4});
  EXPECT_EQ(index.nodes(), 4u);
  EXPECT_EQ(index.Find("", Ids{5, 6, 3, 4}).holder, kB);
}

TEST(PrefixIndexTest, ATenantNeverFindsWhatAnotherOneSent) {
  PrefixIndex index(2);
  index.Extend(kA, "red", Ids{1, 2, 3, 4});
  EXPECT_EQ(index.Find("blue", Ids{1, 2, 3, 4}).blocks, 0);
  EXPECT_EQ(index.Find("", Ids{1, 2, 3, 4}).blocks, 0);
  index.Extend(kB, "blue", Ids{1, 2, 3, 4});
  EXPECT_EQ(index.Find("red", Ids{1, 2, 3, 4}).holder, kA);
  EXPECT_EQ(index.Find("blue", Ids{1, 2, 3, 4}).holder, kB);
}

TEST(PrefixIndexTest, BlocksStayAsLongAsSomebodyHoldsThem) {
  PrefixIndex index(2);
  index.Extend(kA, "", Ids{1, 2, 3, 4});
  index.Extend(kB, "", Ids{1, 2, 5, 6});
  index.Extend(kC, "", Ids{1, 2});
  EXPECT_EQ(index.Find("", Ids{1, 2}).holder, kC);
  index.Truncate(kC, 0);
  index.Truncate(kA, 1);
  EXPECT_EQ(index.Find("", Ids{1, 2, 3, 4}).blocks, 1);
  index.Truncate(kA, 0);
  EXPECT_EQ(index.Find("", Ids{1, 2, 5, 6}).holder, kB);
  index.Truncate(kB, 0);
  EXPECT_EQ(index.nodes(), 0u);
  EXPECT_EQ(index.Find("", Ids{1, 2}).blocks, 0);
}

TEST(PrefixIndexTest, KnowsWhatAnotherSequenceMakesSuperfluous) {
  PrefixIndex index(2);
  index.Extend(kA, "", Ids{1, 2, 3, 4});
  EXPECT_EQ(index.AnotherHolder(kA), std::nullopt);
  index.Extend(kB, "", Ids{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(index.AnotherHolder(kA), kB);
  EXPECT_EQ(index.AnotherHolder(kB), std::nullopt);
  EXPECT_TRUE(index.IsPrefix(kA, kB));
  EXPECT_FALSE(index.IsPrefix(kB, kA));
  EXPECT_FALSE(index.IsPrefix(kC, kA));
}

// A plain model: what each sequence holds, looked through from end to end.
class PrefixIndexModelTest : public testing::Test {
 protected:
  struct Held {
    std::string tenant;
    Ids ids;  // Whole blocks.
  };
  uint64_t Pick(uint64_t below) { return random_() % below; }
  std::string AnyTenant() { return std::string(1, static_cast<char>('a' + Pick(3))); }

  // Few different ids, so that sequences meet.
  void Append(Ids* ids, size_t count) {
    for (size_t i = 0; i < count; ++i) ids->push_back(static_cast<TokenId>(Pick(2)));
  }

  void ExtendOne() {
    const uint64_t id = Pick(kSequences);
    Held& held = model_[id];
    if (held.ids.empty()) {
      held.tenant = AnyTenant();
      // Most start like another one.
      const auto other = model_.find(Pick(kSequences));
      if (other != model_.end()) held.ids = other->second.ids;
    }
    Ids ids = held.ids;
    if (ids.size() < kLongest) Append(&ids, Pick(3 * kBlock));
    index_.Extend({id}, held.tenant, ids);
    ids.resize(ids.size() / kBlock * kBlock);
    held.ids = ids;
    if (ids.empty()) model_.erase(id);
  }

  void TruncateOne() {
    const uint64_t id = Pick(kSequences);
    const auto held = model_.find(id);
    const size_t blocks = held == model_.end() ? 0 : Pick(held->second.ids.size() / kBlock + 2);
    index_.Truncate({id}, static_cast<int32_t>(blocks));
    if (held == model_.end()) return;
    if (blocks * kBlock < held->second.ids.size()) held->second.ids.resize(blocks * kBlock);
    if (held->second.ids.empty()) model_.erase(held);
  }

  static size_t Common(const Ids& a, const Ids& b) {
    const auto differs = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
    return static_cast<size_t>(differs - a.begin()) / kBlock;
  }

  void FindOne() {
    const std::string tenant = AnyTenant();
    Ids ids;
    const auto like = model_.find(Pick(kSequences));
    if (like != model_.end()) ids = like->second.ids;
    Append(&ids, Pick(kBlock));
    size_t most = 0;
    for (const auto& [id, held] : model_) {
      if (held.tenant == tenant) most = std::max(most, Common(held.ids, ids));
    }
    const PrefixIndex::Match match = index_.Find(tenant, ids);
    ASSERT_EQ(match.blocks, static_cast<int32_t>(most));
    if (most == 0) return;
    const Held& holder = model_.at(match.holder.value);
    ASSERT_EQ(holder.tenant, tenant);
    ASSERT_GE(Common(holder.ids, ids), most);
  }

  void CompareTwo() {
    const uint64_t a = Pick(kSequences), b = Pick(kSequences);
    const auto part = model_.find(a), whole = model_.find(b);
    ASSERT_EQ(index_.Blocks({a}), part == model_.end() ? 0 : part->second.ids.size() / kBlock);
    const bool is_prefix =
        part != model_.end() && whole != model_.end() &&
        part->second.tenant == whole->second.tenant &&
        Common(part->second.ids, whole->second.ids) * kBlock == part->second.ids.size();
    ASSERT_EQ(index_.IsPrefix({a}, {b}), is_prefix);
    if (part == model_.end()) return;
    const std::optional<SequenceId> another = index_.AnotherHolder({a});
    if (is_prefix && a != b) {
      ASSERT_TRUE(another.has_value());
    }
    if (another.has_value()) {
      ASSERT_NE(another->value, a);
      ASSERT_TRUE(index_.IsPrefix({a}, *another));
    }
  }

  static constexpr uint64_t kSequences = 12;
  static constexpr size_t kBlock = 3;
  static constexpr size_t kLongest = 60;
  std::mt19937_64 random_{20260301};
  PrefixIndex index_{kBlock};
  std::map<uint64_t, Held> model_;
};

TEST_F(PrefixIndexModelTest, AnswersAsAPlainModelDoesAfterRandomOperations) {
  for (int operation = 0; operation < 1'000'000; ++operation) {
    SCOPED_TRACE(operation);
    switch (Pick(6)) {
      case 0:
      case 1:
        ExtendOne();
        break;
      case 2:
        TruncateOne();
        break;
      case 3:
        CompareTwo();
        break;
      default:
        FindOne();
    }
    if (HasFatalFailure()) return;
  }
  for (uint64_t id = 0; id < kSequences; ++id) index_.Truncate({id}, 0);
  EXPECT_EQ(index_.nodes(), 0u);
}

}  // namespace
}  // namespace tokenrouter
