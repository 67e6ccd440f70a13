#include "libs/batching_model/candidate_search.h"

#include <algorithm>
#include <limits>

#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

// The conditions of both rounds; the caller sets limits and seed.
SimulationSetup RunOf(const SimulationSetup& setup, const TunerOptions& options) {
  SimulationSetup run = setup;
  run.noise_cv = std::max(setup.noise_cv, options.least_jitter);
  run.duration_ms = std::numeric_limits<double>::max();
  run.desynchronised = true;
  return run;
}

absl::StatusOr<std::vector<ScoredPolicy>> Score(const SimulationSetup& run,
                                                const std::vector<BatchingPolicy>& policies) {
  std::vector<ScoredPolicy> scored;
  for (const BatchingPolicy& policy : policies) {
    TR_ASSIGN_OR_RETURN(const SimulationResult result, Simulate(run, policy));
    scored.push_back({policy, result});
  }
  return scored;
}

absl::StatusOr<std::vector<ScoredPolicy>> ScoreBriefly(const SimulationSetup& setup,
                                                       const std::vector<BatchingPolicy>& policies,
                                                       const TunerOptions& options) {
  SimulationSetup run = RunOf(setup, options);
  run.max_steps = options.first_steps;
  run.max_rows = options.first_rows;
  run.seed = options.seed;
  return Score(run, policies);
}

}  // namespace

absl::StatusOr<std::vector<ScoredPolicy>> ScoreAtLength(const SimulationSetup& setup,
                                                        const std::vector<BatchingPolicy>& policies,
                                                        const TunerOptions& options) {
  SimulationSetup run = RunOf(setup, options);
  run.max_steps = options.final_steps;
  run.max_rows = options.final_rows;
  run.seed = options.seed + 1;
  return Score(run, policies);
}

absl::StatusOr<std::vector<ScoredPolicy>> ScoreFinalists(
    const SimulationSetup& setup, const std::vector<BatchingPolicy>& policies,
    const TunerOptions& options) {
  const auto kept = static_cast<size_t>(options.finalists);
  if (policies.size() <= kept) return ScoreAtLength(setup, policies, options);
  TR_ASSIGN_OR_RETURN(std::vector<ScoredPolicy> scored, ScoreBriefly(setup, policies, options));
  std::stable_sort(scored.begin(), scored.end(), Faster);
  std::vector<BatchingPolicy> finalists;
  for (size_t i = 0; i < kept; ++i) finalists.push_back(scored[i].policy);
  return ScoreAtLength(setup, finalists, options);
}

}  // namespace tokenrouter
