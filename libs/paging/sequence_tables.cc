#include "libs/paging/sequence_tables.h"

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {

SequenceTables::SequenceTables(BlockCount total_blocks, int32_t block_size)
    : block_size_(block_size), pool_(total_blocks) {
  TR_CHECK(block_size > 0) << "block size " << block_size;
}

Position SequenceTables::Length(SequenceId sequence) const {
  const BlockTable* table = Find(sequence);
  return table == nullptr ? 0 : table->length();
}

const BlockTable* SequenceTables::Find(SequenceId sequence) const {
  const auto it = tables_.find(sequence);
  return it == tables_.end() ? nullptr : &it->second.table;
}

BlockCount SequenceTables::BlocksNeeded(std::span<const SequenceExtension> batch) const {
  BlockCount needed = 0;
  // References that copies of this same batch release: the last sequence of a shared block writes
  // into it and needs no copy.
  absl::flat_hash_map<BlockId, int32_t> given_up;
  for (const SequenceExtension& extension : batch) {
    const BlockTable* table = Find(extension.sequence);
    if (table == nullptr) {
      needed += BlockTable(block_size_).BlocksToAppend(extension.count);
      continue;
    }
    needed += table->BlocksToAppend(extension.count);
    const BlockId open = table->open_block();
    if (extension.count == 0 || open < 0 || !pool_.shared(open)) continue;
    if (pool_.references(open) - given_up[open] > 1) {
      ++needed;
      ++given_up[open];
    }
  }
  return needed;
}

absl::Status SequenceTables::Extend(std::span<const SequenceExtension> batch,
                                    std::vector<BlockCopy>* copies) {
  const BlockCount needed = BlocksNeeded(batch);
  if (needed > pool_.unallocated()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("KV cache: a batch of ", batch.size(), " rows needs ", needed, " blocks, ",
                     pool_.unallocated(), " of ", pool_.total(),
                     " are free; release sequences or take fewer rows"));
  }
  ++batches_;
  for (const SequenceExtension& extension : batch) {
    Entry& entry =
        tables_.try_emplace(extension.sequence, Entry{BlockTable(block_size_)}).first->second;
    TR_CHECK(entry.batch != batches_) << "sequence " << extension.sequence.value << " twice";
    entry.batch = batches_;
    const absl::Status status = entry.table.Extend(extension.count, &pool_, copies);
    TR_CHECK(status.ok()) << "BlocksNeeded was too small: " << status;
  }
  return absl::OkStatus();
}

void SequenceTables::Truncate(SequenceId sequence, Position length) {
  const auto it = tables_.find(sequence);
  if (it == tables_.end()) {
    TR_CHECK(length == 0) << "unknown sequence " << sequence.value << " to " << length;
    return;
  }
  it->second.table.Truncate(length, &pool_);
}

void SequenceTables::MarkReclaimable(SequenceId sequence) {
  const auto it = tables_.find(sequence);
  TR_CHECK(it != tables_.end()) << "unknown sequence " << sequence.value;
  it->second.table.MarkReclaimable(&pool_);
}

void SequenceTables::Release(SequenceId sequence) {
  const auto it = tables_.find(sequence);
  if (it == tables_.end()) return;
  it->second.table.Truncate(0, &pool_);
  tables_.erase(it);
}

absl::Status SequenceTables::Fork(SequenceId parent, SequenceId child, Position length,
                                  std::vector<BlockCopy>* copies) {
  TR_CHECK(!tables_.contains(child)) << "sequence " << child.value << " exists";
  const auto it = tables_.find(parent);
  TR_CHECK(it != tables_.end()) << "unknown sequence " << parent.value;
  Entry entry{BlockTable(block_size_)};
  TR_RETURN_IF_ERROR(it->second.table.Fork(length, &pool_, &entry.table, copies));
  tables_.emplace(child, std::move(entry));
  return absl::OkStatus();
}

}  // namespace tokenrouter
