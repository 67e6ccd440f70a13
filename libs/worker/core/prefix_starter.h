// PrefixStarter lets the sequences of one plan start from KV that others made, and holds those back
// that would read what another row of the plan is reading.
// Ownership: engine and cache must outlive it. Threads: not thread-safe; lives on the engine's
// owner loop. Cost: O(ids of the rows that start or still read); nothing where no row starts.
#pragma once

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "libs/inference/engine.h"
#include "libs/worker/cache/prefix_cache.h"
#include "libs/worker/core/sequence_state.h"
#include "libs/worker/step/batch_planner.h"

namespace tokenrouter {

class PrefixStarter {
 public:
  PrefixStarter(Role role, bool enabled, Engine* engine, PrefixCache* cache)
      : role_(role), enabled_(enabled), engine_(engine), cache_(cache) {}

  // A new plan is being made: no sequence is held back.
  void Begin();
  // Rows of the plan that start from nothing get what is in KV of their ids, or are held back in
  // this plan while another row of it reads the same ids. True when the plan no longer stands.
  bool Start(const std::vector<SequenceState*>& sequences, const BatchPlan& plan);
  bool IsHeldBack(SequenceId sequence) const { return held_back_.contains(sequence); }
  // The rows that the held back ones wait for cannot go on; false when none is held back.
  bool LetGo();

 private:
  bool Starts(const SequenceState& sequence) const;
  // What sequences that have started have yet to read, if they can go on.
  void AddReaders(const std::vector<SequenceState*>& sequences, const BatchPlan& plan,
                  PrefixIndex* under_way) const;

  const Role role_;
  const bool enabled_;
  Engine* const engine_;
  PrefixCache* const cache_;
  absl::flat_hash_set<SequenceId> held_back_;  // In the plan that is being made.
  absl::flat_hash_set<SequenceId> looked_up_;  // For the plan that is being made.
};

}  // namespace tokenrouter
