#include "libs/worker/cache/prefix_cache.h"

#include <algorithm>
#include <optional>

#include "libs/status/check.h"

namespace tokenrouter {

PrefixCache::PrefixCache(Engine* engine, bool enabled)
    : engine_(engine),
      enabled_(enabled),
      block_size_(engine->info().block_size),
      index_(engine->info().block_size) {}

Position PrefixCache::Start(SequenceId sequence, const std::string& tenant,
                            std::span<const TokenId> ids, Position most) {
  if (!enabled_) return 0;
  counters_.lookup_ids += ids.size();
  const PrefixIndex::Match match =
      index_.Find(tenant, ids.first(std::clamp<size_t>(most, 0, ids.size())));
  if (match.blocks == 0) return 0;
  const Position length = match.blocks * block_size_;
  engine_->Release(sequence);  // An engine may hold it even without any ids.
  const absl::Status status = engine_->Fork(match.holder, sequence, length);
  TR_CHECK(status.ok()) << "sharing whole blocks needs no free block: " << status;
  sharing_[sequence] = {.blocks = match.blocks, .source = match.holder};
  if (IsCached(match.holder)) {
    Touch(match.holder);
  } else {
    Sharing& source = sharing_[match.holder];
    source.blocks = std::max(source.blocks, match.blocks);
  }
  counters_.hit_ids += length;
  return length;
}

void PrefixCache::Settle(SequenceId sequence, const std::string& tenant,
                         std::span<const TokenId> committed) {
  if (!enabled_) return;
  const size_t in_kv = engine_->Length(sequence);
  index_.Extend(sequence, tenant, committed.first(std::min(in_kv, committed.size())));
}

void PrefixCache::Cut(SequenceId sequence, Position length) {
  if (engine_->Length(sequence) <= length) return;
  const auto sharing = sharing_.find(sequence);
  if (sharing != sharing_.end() && length < sharing->second.blocks * block_size_) {
    length -= length % block_size_;
    sharing->second.blocks = length / block_size_;
  }
  index_.Truncate(sequence, length / block_size_);
  engine_->Truncate(sequence, length);
}

void PrefixCache::Drop(SequenceId sequence) {
  sharing_.erase(sequence);
  Release(sequence);
}

void PrefixCache::Close(SequenceId sequence) {
  const auto sharing = sharing_.find(sequence);
  const SequenceId source = sharing == sharing_.end() ? SequenceId{} : sharing->second.source;
  if (sharing != sharing_.end()) sharing_.erase(sharing);
  const int32_t blocks = index_.Blocks(sequence);
  if (blocks == 0) return Release(sequence);
  if (const std::optional<SequenceId> other = index_.AnotherHolder(sequence)) {
    if (IsCached(*other)) Touch(*other);
    return Release(sequence);
  }
  if (IsCached(source) && index_.IsPrefix(source, sequence)) Release(source);
  engine_->Truncate(sequence, blocks * block_size_);
  engine_->MarkReclaimable(sequence);
  cached_[sequence] = used_.insert(used_.end(), sequence);
  if (used_.size() > kMaxCachedSequences) {
    counters_.evictions += index_.Blocks(used_.front());
    Release(used_.front());
  }
}

void PrefixCache::MakeFree(int64_t blocks) {
  while (engine_->unallocated_blocks() < blocks && !used_.empty()) EvictLastBlock(used_.front());
}

bool PrefixCache::Clear() {
  if (used_.empty()) return false;
  while (!used_.empty()) EvictLastBlock(used_.front());
  return true;
}

void PrefixCache::Touch(SequenceId sequence) {
  used_.splice(used_.end(), used_, cached_.at(sequence));
}

void PrefixCache::EvictLastBlock(SequenceId sequence) {
  ++counters_.evictions;
  const int32_t left = index_.Blocks(sequence) - 1;
  if (left == 0) return Release(sequence);
  index_.Truncate(sequence, left);
  engine_->Truncate(sequence, left * block_size_);
}

void PrefixCache::Release(SequenceId sequence) {
  index_.Truncate(sequence, 0);
  engine_->Release(sequence);
  const auto cached = cached_.find(sequence);
  if (cached == cached_.end()) return;
  used_.erase(cached->second);
  cached_.erase(cached);
}

}  // namespace tokenrouter
