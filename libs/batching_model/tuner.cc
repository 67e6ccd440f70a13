#include "libs/batching_model/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "libs/batching_model/shared_threshold.h"
#include "libs/batching_model/step_tables.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;

constexpr double kBetas[] = {.3, .5, .7, 1, 1.5, 2};
// Thresholds near the formula's, as a share of it: costs that bend move the best one.
constexpr double kThresholdShares[] = {.7, .85, 1, 1.15, 1.4};
// Above these the exact search costs more than the simulations; the fluid formula is close there.
constexpr int kExactSearchRequests = 512;
constexpr int kExactSearchPartialReturn = 64;  // q < 1: cubic.

struct Candidate {
  BatchingPolicy policy;
  SimulationResult result;
};

std::vector<Candidate> SharedCandidates(const SimulationSetup& setup) {
  const std::vector<double> small = SmallStepTimes(setup.small, setup.requests);
  const std::vector<double> large = LargeStepTimes(setup.large, setup.requests, setup.r, setup.q);
  const SharedDeviceModel model{small, large, setup.requests, setup.r, setup.q};
  const int searched = setup.q < 1 ? kExactSearchPartialReturn : kExactSearchRequests;
  const int center = setup.requests <= searched ? BestThreshold(model) : FluidThreshold(model);
  std::vector<Candidate> candidates;
  int last = 1;  // Threshold 1 is greedy.
  for (const double share : kThresholdShares) {
    const int m = std::min(setup.requests, static_cast<int>(std::lround(center * share)));
    if (m <= last) continue;
    candidates.push_back({{.kind = Kind::kModel, .m_large = m}, {}});
    last = m;
  }
  return candidates;
}

// Greedy comes first.
std::vector<Candidate> Candidates(const SimulationSetup& setup) {
  std::vector<Candidate> candidates = {{{.kind = Kind::kGreedy}, {}}};
  if (setup.requests == 1) return candidates;  // One request never waits for another.
  if (setup.shared_device) {
    for (Candidate& candidate : SharedCandidates(setup)) candidates.push_back(candidate);
    return candidates;
  }
  for (const double beta : kBetas) {
    candidates.push_back({{.kind = Kind::kModel, .beta = beta}, {}});
  }
  return candidates;
}

// All candidates see the same random numbers.
absl::Status Score(const SimulationSetup& setup, std::vector<Candidate>* candidates) {
  for (Candidate& candidate : *candidates) {
    TR_ASSIGN_OR_RETURN(candidate.result, Simulate(setup, candidate.policy));
  }
  return absl::OkStatus();
}

bool Faster(const Candidate& a, const Candidate& b) {
  return a.result.committed_per_s > b.result.committed_per_s;
}

}  // namespace

absl::StatusOr<TunedPolicy> Tune(const SimulationSetup& setup, const TunerOptions& options) {
  TR_RETURN_IF_ERROR(CheckSetup(setup));
  SimulationSetup run = setup;
  run.noise_cv = std::max(setup.noise_cv, options.least_jitter);
  run.duration_ms = std::numeric_limits<double>::max();
  run.desynchronised = true;
  run.max_steps = options.first_steps;
  run.max_rows = options.first_rows;
  run.seed = options.seed;
  std::vector<Candidate> candidates = Candidates(setup);
  if (candidates.size() > static_cast<size_t>(options.finalists) + 1) {
    TR_RETURN_IF_ERROR(Score(run, &candidates));
    std::stable_sort(candidates.begin() + 1, candidates.end(), Faster);
    candidates.resize(static_cast<size_t>(options.finalists) + 1);
  }
  run.max_steps = options.final_steps;
  run.max_rows = options.final_rows;
  run.seed = options.seed + 1;
  TR_RETURN_IF_ERROR(Score(run, &candidates));
  const Candidate& greedy = candidates.front();
  const Candidate* best = &*std::min_element(candidates.begin(), candidates.end(), Faster);
  const double least = greedy.result.committed_per_s * (1.0 + options.least_gain);
  if (best->result.committed_per_s <= least) best = &greedy;
  return TunedPolicy{.policy = best->policy,
                     .predicted = best->result,
                     .greedy_committed_per_s = greedy.result.committed_per_s};
}

}  // namespace tokenrouter
