// Which worker of a pool takes a request. Pure: a table in, an index out.
// Order: the numerics class that wrote before, the most ids still held, the fewest sequences, the
// most free blocks, the oldest stream.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "services/scheduler/core_options.h"

namespace tokenrouter {

struct WorkerCandidate {
  StreamId stream = 0;
  bool open_for_new = true;  // False while draining or while it still closes this very request.
  bool same_class = true;    // Of the tokens that this role wrote already; true if none.
  Position held = 0;         // Ids of the request that it still has.
  int32_t sequences = 0;
  int32_t max_sequences = 0;  // 0: no limit.
  int64_t free_blocks = 0;

  bool has_room() const { return max_sequences == 0 || sequences < max_sequences; }
};

// Index of the best candidate with room; nothing when there is none.
std::optional<size_t> ChooseWorker(std::span<const WorkerCandidate> candidates);

// A sequence on a full worker that does not hold the pen.
struct EvictionCandidate {
  uint64_t request = 0;
  Position known = 0;  // Ids to compute again should it come back.
};

// Index of the sequence that is cheapest to rebuild; nothing when there is none.
std::optional<size_t> ChooseVictim(std::span<const EvictionCandidate> candidates);

}  // namespace tokenrouter
