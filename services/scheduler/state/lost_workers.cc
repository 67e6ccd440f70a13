#include "services/scheduler/state/lost_workers.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tokenrouter {

std::vector<LostWorker> LostWorkers::TakeDue(absl::Time now) {
  std::vector<LostWorker> due;
  if (workers_.empty()) return due;
  const auto first_due =
      std::stable_partition(workers_.begin(), workers_.end(),
                            [now](const LostWorker& worker) { return worker.judged_at > now; });
  due.assign(std::make_move_iterator(first_due), std::make_move_iterator(workers_.end()));
  workers_.erase(first_due, workers_.end());
  return due;
}

absl::Time LostWorkers::JudgedAt(StreamId stream) const {
  for (const LostWorker& worker : workers_) {
    if (worker.stream == stream) return worker.judged_at;
  }
  return absl::InfinitePast();
}

}  // namespace tokenrouter
