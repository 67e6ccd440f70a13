#include "services/scheduler/workers/worker_choice.h"

#include <tuple>

namespace tokenrouter {
namespace {

// Smaller is better.
auto Rank(const WorkerCandidate& c) {
  return std::tuple(!c.same_class, -c.held, c.sequences - c.prefix_worth, -c.free_blocks, c.stream);
}

}  // namespace

std::optional<size_t> ChooseWorker(std::span<const WorkerCandidate> candidates) {
  std::optional<size_t> best;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const WorkerCandidate& candidate = candidates[i];
    if (!candidate.open_for_new || !candidate.has_capacity()) continue;
    if (!best || Rank(candidate) < Rank(candidates[*best])) best = i;
  }
  return best;
}

}  // namespace tokenrouter
