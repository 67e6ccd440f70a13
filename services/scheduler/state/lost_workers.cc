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

std::optional<LostWorker> LostWorkers::Take(const std::string& worker_id) {
  const auto found = std::find_if(
      workers_.begin(), workers_.end(),
      [&worker_id](const LostWorker& worker) { return worker.worker_id == worker_id; });
  if (found == workers_.end()) return std::nullopt;
  LostWorker taken = std::move(*found);
  workers_.erase(found);
  return taken;
}

absl::Time LostWorkers::MayReturnUntil(int pair, Role role) const {
  absl::Time until = absl::InfinitePast();
  for (const LostWorker& worker : workers_) {
    if (worker.pair == pair && worker.role == role) until = std::max(until, worker.judged_at);
  }
  return until;
}

absl::Time LostWorkers::JudgedAt(StreamId stream) const {
  for (const LostWorker& worker : workers_) {
    if (worker.stream == stream) return worker.judged_at;
  }
  return absl::InfinitePast();
}

}  // namespace tokenrouter
