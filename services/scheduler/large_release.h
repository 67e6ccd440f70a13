// When rows that wait for the large model may run. A policy is a pure function of a snapshot; the
// core applies what it says in the same frame.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "services/scheduler/core_options.h"

namespace tokenrouter {

// One large worker and what waits for it, oldest first.
struct ReleaseSnapshot {
  struct Row {
    uint64_t request = 0;
    absl::Duration waited;
    int64_t unseen_ids = 0;  // That the worker must read before it can answer.
  };
  StreamId worker = 0;
  std::span<const Row> waiting;
  int32_t released = 0;       // Rows that it may run already.
  int32_t live_requests = 0;  // Of the pair.
  int32_t ready_small = 0;    // Rows that the pair's small workers can run now.
};

class ReleasePolicy {
 public:
  virtual ~ReleasePolicy() = default;
  // Indices into snapshot.waiting, ascending, each at most once.
  virtual std::vector<size_t> Decide(const ReleaseSnapshot& snapshot) const = 0;
};

// Everything at once.
class GreedyRelease : public ReleasePolicy {
 public:
  std::vector<size_t> Decide(const ReleaseSnapshot& snapshot) const override;
};

}  // namespace tokenrouter
