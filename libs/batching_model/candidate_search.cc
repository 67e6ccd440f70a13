#include "libs/batching_model/candidate_search.h"

#include <algorithm>
#include <limits>

#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

absl::Status Score(const SimulationSetup& setup, std::vector<ScoredPolicy>* candidates) {
  for (ScoredPolicy& candidate : *candidates) {
    TR_ASSIGN_OR_RETURN(candidate.result, Simulate(setup, candidate.policy));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ScoredPolicy>> ScoreCandidates(
    const SimulationSetup& setup, const std::vector<BatchingPolicy>& policies,
    const TunerOptions& options) {
  TR_CHECK(!policies.empty());
  SimulationSetup run = setup;
  run.noise_cv = std::max(setup.noise_cv, options.least_jitter);
  run.duration_ms = std::numeric_limits<double>::max();
  run.desynchronised = true;
  run.max_steps = options.first_steps;
  run.max_rows = options.first_rows;
  run.seed = options.seed;
  std::vector<ScoredPolicy> candidates;
  for (const BatchingPolicy& policy : policies) candidates.push_back({policy, {}});
  const auto kept = static_cast<size_t>(options.finalists) + 1;
  if (candidates.size() > kept) {
    TR_RETURN_IF_ERROR(Score(run, &candidates));
    std::stable_sort(candidates.begin() + 1, candidates.end(), Faster);
    candidates.resize(kept);
  }
  run.max_steps = options.final_steps;
  run.max_rows = options.final_rows;
  run.seed = options.seed + 1;
  TR_RETURN_IF_ERROR(Score(run, &candidates));
  return candidates;
}

}  // namespace tokenrouter
