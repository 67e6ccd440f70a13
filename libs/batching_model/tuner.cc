#include "libs/batching_model/tuner.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "libs/batching_model/shared_threshold.h"
#include "libs/batching_model/step_tables.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;

// Static thresholds as shares of a worker's requests. Where rows need the handoff latency and step
// times are in a whole ratio, a large threshold keeps both sides in one phase, which the delay
// balance, whose decisions each look one step ahead, does not.
constexpr double kStaticSmallShare = .1;
constexpr double kStaticLargeShares[] = {.5, .65, .8};
// Thresholds near the formula's, as a share of it: costs that bend move the best one.
constexpr double kThresholdShares[] = {.7, .85, 1, 1.15, 1.4};
// Above these the exact search costs more than the simulations; the fluid formula is close there.
constexpr int kExactSearchRequests = 512;
constexpr int kExactSearchPartialReturn = 64;  // q < 1: cubic.

// Rows of a step that lasts no longer than `most_ms`, at least one; 0: no limit. Waiting for more
// rows than one step takes leaves rows behind.
int RowsWithin(const std::vector<double>& times, double most_ms) {
  const auto rows = static_cast<int>(times.size()) - 1;
  if (most_ms <= 0) return rows;
  const auto beyond = std::upper_bound(times.begin() + 1, times.end(), most_ms);
  return std::max(1, static_cast<int>(beyond - times.begin()) - 1);
}

std::vector<BatchingPolicy> SharedCandidates(const SimulationSetup& setup) {
  const std::vector<double> small = SmallStepTimes(setup.small, setup.requests);
  const std::vector<double> large = LargeStepTimes(setup.large, setup.requests, setup.r, setup.q);
  const SharedDeviceModel model{small, large, setup.requests, setup.r, setup.q};
  const int searched = setup.q < 1 ? kExactSearchPartialReturn : kExactSearchRequests;
  const int best = setup.requests <= searched ? BestThreshold(model) : FluidThreshold(model);
  const int center = std::min(best, RowsWithin(large, setup.max_step_ms));
  std::vector<BatchingPolicy> candidates;
  int last = 1;  // Threshold 1 is greedy.
  for (const double share : kThresholdShares) {
    const int m = std::min(setup.requests, static_cast<int>(std::lround(center * share)));
    if (m <= last) continue;
    candidates.push_back({.kind = Kind::kModel, .m_large = m});
    last = m;
  }
  return candidates;
}

// The mean steps are those of serving at once: delay balance is one step of policy improvement over
// that (Howard 1960).
std::vector<BatchingPolicy> SeparateCandidates(const SimulationSetup& setup,
                                               const SimulationResult& greedy) {
  std::vector<BatchingPolicy> candidates = {{.kind = Kind::kModel,
                                             .step_small_ms = greedy.step_small_ms,
                                             .step_large_ms = greedy.step_large_ms}};
  const auto rows = [&](double share, int workers) {
    return std::max(1, static_cast<int>(std::lround(share * setup.requests / workers)));
  };
  for (const double share : kStaticLargeShares) {
    candidates.push_back({.kind = Kind::kStatic,
                          .m_small = rows(kStaticSmallShare, setup.small_workers),
                          .m_large = rows(share, setup.large_workers)});
  }
  return candidates;
}

// What competes with greedy.
std::vector<BatchingPolicy> Candidates(const SimulationSetup& setup,
                                       const SimulationResult& greedy) {
  if (setup.requests == 1) return {};  // One request never waits for another.
  return setup.shared_device ? SharedCandidates(setup) : SeparateCandidates(setup, greedy);
}

}  // namespace

absl::StatusOr<TunedPolicy> Tune(const SimulationSetup& setup, const TunerOptions& options) {
  TR_RETURN_IF_ERROR(CheckSetup(setup));
  TR_ASSIGN_OR_RETURN(const std::vector<ScoredPolicy> at_once,
                      ScoreAtLength(setup, {{.kind = Kind::kGreedy}}, options));
  const ScoredPolicy& greedy = at_once.front();
  TR_ASSIGN_OR_RETURN(const std::vector<ScoredPolicy> others,
                      ScoreFinalists(setup, Candidates(setup, greedy.result), options));
  const ScoredPolicy* best = &greedy;
  double least = greedy.result.committed_per_s * (1.0 + options.least_gain);
  for (const ScoredPolicy& other : others) {
    if (other.result.committed_per_s <= least) continue;
    best = &other;
    least = other.result.committed_per_s;
  }
  return TunedPolicy{.policy = best->policy,
                     .predicted = best->result,
                     .greedy_committed_per_s = greedy.result.committed_per_s};
}

}  // namespace tokenrouter
