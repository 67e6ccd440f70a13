// SequenceStore is every sequence of a worker together with its KV: the table of who they are, the
// cache that lets them share blocks, and the order in which they give blocks up.
// Ownership: owns table and cache; the engine must outlive it. Threads: not thread-safe; lives on
// the engine's owner loop. Cost: the counts go through all sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "libs/inference/engine.h"
#include "libs/worker/cache/prefix_cache.h"
#include "libs/worker/core/sequence_table.h"

namespace tokenrouter {

class SequenceStore {
 public:
  SequenceStore(Role role, Engine* engine, bool prefix_cache)
      : role_(role), engine_(engine), cache_(engine, prefix_cache) {}

  SequenceTable& table() { return table_; }
  const SequenceTable& table() const { return table_; }
  PrefixCache& cache() { return cache_; }
  const PrefixCache& cache() const { return cache_; }

  // Committed ids of it that are in KV may be shared from now on.
  void Settle(const SequenceState& sequence);
  // It is over: it leaves the table, and what is settled of its KV stays cached.
  void Forget(SequenceState* sequence);
  // Forgets one sequence of an earlier term that is not opened again; false when there is none.
  bool ForgetOneUnclaimed();
  void ForgetUnclaimed();
  // Drops the KV of the sequence that is missed least, so that `in_need` finds blocks
  // (preemption_policy.h); false when none may be dropped.
  bool Preempt(const SequenceState* in_need);

  size_t size() const { return table_.size(); }
  // Sequences whose rows could run in the next step.
  int32_t Ready() const;
  // Sequences with a grant that cannot run: credit-blocked or not released.
  int32_t Waiting() const;
  // Blocks that no open request holds; cached ones (prefix_cache.h) are among them.
  int64_t free_blocks() const { return cache_.free_blocks(); }

 private:
  const Role role_;
  Engine* const engine_;
  SequenceTable table_;
  PrefixCache cache_;
};

}  // namespace tokenrouter
