// Chooses the sequence whose KV is dropped when a ready sequence needs blocks: first sequences that
// could not run now anyway, the longest idle first; then the youngest ready one, if it is younger
// than the one in need, so that the oldest always progresses. The ids stay with the worker: a
// victim computes them again later. Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tokenrouter {

struct VictimCandidate {
  bool holds_kv = false;
  bool ready = false;
  uint64_t last_step = 0;  // Smaller: idle for longer.
  uint64_t age = 0;        // Smaller: opened earlier. Unique.
};

// Index of the victim; none when no sequence may be preempted for `in_need` (index of the sequence
// that lacks blocks, itself never chosen).
std::optional<size_t> ChooseVictim(std::span<const VictimCandidate> candidates, size_t in_need);

}  // namespace tokenrouter
