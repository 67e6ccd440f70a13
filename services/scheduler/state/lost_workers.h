// LostWorkers are workers that have left the directory while it is not decided yet what becomes of
// the requests that had a side there (WorkerLoss decides).
// Ownership: by value in CoreState. Threads: lives on the scheduler's loop. Cost: O(lost workers)
// per call; they are few and leave within moments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "libs/tokens/token_types.h"
#include "services/scheduler/options/core_options.h"

namespace tokenrouter {

struct LostWorker {
  struct Held {
    uint64_t request = 0;
    bool ran = false;  // It may have been in the running step.
  };
  StreamId stream = 0;
  std::string worker_id;
  Role role = Role::kSmall;
  int pair = 0;
  absl::Time judged_at;        // When its requests are judged; until then they await it.
  std::vector<Held> requests;  // That had a side there, in ascending order.
};

class LostWorkers {
 public:
  void Add(LostWorker worker) { workers_.push_back(std::move(worker)); }
  // Those whose time has come, in the order in which they were lost; removed.
  std::vector<LostWorker> TakeDue(absl::Time now);
  // The one that has come back; removed. Nothing when it is not here.
  std::optional<LostWorker> Take(const std::string& worker_id);
  // Until when a worker of this pool may come back before its requests are judged; the infinite
  // past when none may.
  absl::Time MayReturnUntil(int pair, Role role) const;
  bool MayReturn(int pair, Role role) const {
    return MayReturnUntil(pair, role) != absl::InfinitePast();
  }
  // When the requests of this one are judged; the infinite past when it is not here.
  absl::Time JudgedAt(StreamId stream) const;
  void Clear() { workers_.clear(); }

 private:
  std::vector<LostWorker> workers_;
};

}  // namespace tokenrouter
