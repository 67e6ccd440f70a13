// Random operations against a plain model: every sequence is the list of its tokens, and the KV
// memory is an array that is written and copied as the tables say. Independently of what the tables
// share, each sequence must read back its own tokens, and the count of free blocks must be that of
// the model.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "libs/paging/sequence_tables.h"
#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

constexpr BlockCount kBlocks = 48;
constexpr int32_t kBlockSize = 4;
constexpr uint64_t kSequences = 10;
constexpr int kOperations = 1'000'000;
constexpr int kFullCheckEvery = 64;

class PagingModelTest : public testing::Test {
 protected:
  uint64_t Pick(uint64_t below) { return random_() % below; }

  // The content of the memory for one token of a sequence.
  uint32_t& At(const BlockTable& table, size_t position) {
    return memory_[table.blocks()[position / kBlockSize] * kBlockSize + position % kBlockSize];
  }

  void Copy(const std::vector<BlockCopy>& copies) {
    for (const BlockCopy& copy : copies) {
      for (int32_t i = 0; i < copy.tokens; ++i) {
        memory_[copy.destination * kBlockSize + i] = memory_[copy.source * kBlockSize + i];
      }
    }
  }

  void ExtendSome() {
    std::vector<SequenceExtension> batch;
    const uint64_t first = Pick(kSequences);
    const uint64_t rows = 1 + Pick(3);
    for (uint64_t i = 0; i < rows; ++i) {
      const uint64_t id = (first + i) % kSequences;
      if (!reclaimable_.contains(id)) batch.push_back({{id}, static_cast<Position>(1 + Pick(9))});
    }
    const BlockCount needed = tables_.BlocksNeeded(batch);
    const BlockCount free = tables_.unallocated_blocks();
    std::vector<BlockCopy> copies;
    const absl::Status status = tables_.Extend(batch, &copies);
    ASSERT_EQ(status.ok(), needed <= free) << status;
    ASSERT_EQ(tables_.unallocated_blocks(), status.ok() ? free - needed : free);
    if (!status.ok()) return;
    Copy(copies);
    for (const SequenceExtension& row : batch) {
      std::vector<uint32_t>& tokens = model_[row.sequence.value];
      const BlockTable& table = *tables_.Find(row.sequence);
      for (Position i = 0; i < row.count; ++i) {
        At(table, tokens.size()) = ++stamp_;
        tokens.push_back(stamp_);
      }
    }
  }

  void ForkOne() {
    const uint64_t parent = Pick(kSequences), child = Pick(kSequences);
    if (!model_.contains(parent) || model_.contains(child)) return;
    const auto& tokens = model_[parent];
    const auto length = static_cast<Position>(Pick(tokens.size() + 1));
    std::vector<BlockCopy> copies;
    const BlockCount free = tables_.unallocated_blocks();
    const absl::Status status = tables_.Fork({parent}, {child}, length, &copies);
    ASSERT_EQ(status.ok(), length % kBlockSize == 0 || free > 0) << status;
    if (!status.ok()) return;
    Copy(copies);
    model_[child].assign(tokens.begin(), tokens.begin() + length);
  }

  void TruncateOne() {
    const uint64_t id = Pick(kSequences);
    if (!model_.contains(id)) return;
    auto& tokens = model_[id];
    tokens.resize(Pick(tokens.size() + 1));
    tables_.Truncate({id}, static_cast<Position>(tokens.size()));
  }

  void ReleaseOne() {
    const uint64_t id = Pick(kSequences);
    model_.erase(id);
    reclaimable_.erase(id);
    tables_.Release({id});
  }

  void MarkOneReclaimable() {
    const uint64_t id = Pick(kSequences);
    if (!model_.contains(id) || !reclaimable_.insert(id).second) return;
    tables_.MarkReclaimable({id});
  }

  void CheckAll() {
    absl::flat_hash_set<BlockId> used, live;
    ASSERT_EQ(tables_.sequences(), static_cast<int64_t>(model_.size()));
    for (const auto& [id, tokens] : model_) {
      ASSERT_EQ(tables_.Length({id}), static_cast<Position>(tokens.size()));
      const BlockTable& table = *tables_.Find({id});
      used.insert(table.blocks().begin(), table.blocks().end());
      if (!reclaimable_.contains(id)) live.insert(table.blocks().begin(), table.blocks().end());
      for (size_t i = 0; i < tokens.size(); ++i) {
        ASSERT_EQ(At(table, i), tokens[i]) << "sequence " << id << " position " << i;
      }
    }
    ASSERT_EQ(tables_.unallocated_blocks(), kBlocks - static_cast<BlockCount>(used.size()));
    ASSERT_EQ(tables_.reclaimable_blocks(), static_cast<BlockCount>(used.size() - live.size()));
  }

  std::mt19937_64 random_{20240607};
  SequenceTables tables_{kBlocks, kBlockSize};
  std::vector<uint32_t> memory_ = std::vector<uint32_t>(kBlocks * kBlockSize);
  std::map<uint64_t, std::vector<uint32_t>> model_;
  absl::flat_hash_set<uint64_t> reclaimable_;
  uint32_t stamp_ = 0;
};

TEST_F(PagingModelTest, ReadsBackEverySequenceAfterRandomOperations) {
  for (int operation = 0; operation < kOperations; ++operation) {
    SCOPED_TRACE(operation);
    switch (Pick(18)) {
      case 0:
      case 1:
      case 2:
      case 3:
        ForkOne();
        break;
      case 4:
      case 5:
      case 6:
      case 7:
        TruncateOne();
        break;
      case 8:
      case 9:
        ReleaseOne();
        break;
      case 10:
      case 11:
        MarkOneReclaimable();
        break;
      default:
        ExtendSome();
    }
    if (operation % kFullCheckEvery == 0) CheckAll();
    if (HasFatalFailure()) return;
  }
  for (uint64_t id = 0; id < kSequences; ++id) tables_.Release({id});
  EXPECT_EQ(tables_.unallocated_blocks(), kBlocks);
}

}  // namespace
}  // namespace tokenrouter
