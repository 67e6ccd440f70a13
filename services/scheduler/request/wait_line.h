// WaitLine is a queue of requests from which any member can be removed. Each has a rank; smaller
// ranks are served first, equal ranks by the request's number.
// Threads: lives on the scheduler's loop.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace tokenrouter {

class WaitLine {
 public:
  // The position of one request in the queue.
  using Spot = std::pair<absl::Time, uint64_t>;

  // False when the request is queued already; it keeps its rank then.
  bool Add(uint64_t request, absl::Time rank) {
    if (!ranks_.try_emplace(request, rank).second) return false;
    line_.insert({rank, request});
    return true;
  }
  bool Remove(uint64_t request) {
    const auto found = ranks_.find(request);
    if (found == ranks_.end()) return false;
    line_.erase({found->second, request});
    ranks_.erase(found);
    return true;
  }
  // The first request after that spot; without a spot, the first of all.
  std::optional<Spot> Next(const std::optional<Spot>& after) const {
    const auto next = after ? line_.upper_bound(*after) : line_.begin();
    if (next == line_.end()) return std::nullopt;
    return *next;
  }
  bool empty() const { return line_.empty(); }
  size_t size() const { return line_.size(); }
  const absl::btree_set<Spot>& spots() const { return line_; }

 private:
  absl::btree_set<Spot> line_;
  absl::flat_hash_map<uint64_t, absl::Time> ranks_;
};

}  // namespace tokenrouter
