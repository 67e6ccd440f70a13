// Which worker of a pool takes a request. Pure: a table in, an index out.
// Order of preference: the numerics class that wrote before, the most ids still held, the fewest
// sequences less the worth of its cached KV, the most free blocks, the oldest stream.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "services/scheduler/options/core_options.h"

namespace tokenrouter {

struct WorkerCandidate {
  StreamId stream = 0;
  // False while it drains or has yet to confirm that it closed this request.
  bool open_for_new = true;
  bool same_class = true;  // As the tokens that this role wrote already; true if there are none.
  Position held = 0;       // Ids of the request that it still holds.
  int32_t sequences = 0;
  int32_t prefix_worth = 0;   // In sequences (prefix_affinity.h).
  int32_t max_sequences = 0;  // 0: no limit.
  int64_t free_blocks = 0;
  int64_t lacking_blocks = 0;  // Blocks that it lacks for this request.

  bool has_capacity() const {
    return lacking_blocks == 0 && (max_sequences == 0 || sequences < max_sequences);
  }
};

// The index of the best candidate with capacity; no value when there is none.
std::optional<size_t> ChooseWorker(std::span<const WorkerCandidate> candidates);

}  // namespace tokenrouter
