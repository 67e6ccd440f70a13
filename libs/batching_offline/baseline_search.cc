#include "libs/batching_offline/baseline_search.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "libs/batching_model/tuner.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;

constexpr double kLargeShares[] = {.02, .05, .1, .15, .2, .3, .4, .5, .65, .8, .95};
constexpr double kSmallShares[] = {0, .1, .25};
constexpr double kLargeWaits[] = {0, .5, 1, 2, 4, 8, 16, 32, 48};
constexpr double kSmallWaits[] = {0, .5, 1};

std::vector<BatchingPolicy> StaticFamily(const SimulationSetup& setup) {
  const int n = setup.requests;
  std::vector<BatchingPolicy> family = {{.kind = Kind::kStatic}};
  for (const double small_share : kSmallShares) {
    for (const double large_share : kLargeShares) {
      const int small =
          std::max(1, static_cast<int>(std::lround(small_share * n / setup.small_workers)));
      const int large =
          std::max(1, static_cast<int>(std::lround(large_share * n / setup.large_workers)));
      const BatchingPolicy& last = family.back();
      if (small + large > n + 1 || (small == last.m_small && large == last.m_large)) continue;
      if (setup.shared_device && small > 1) continue;  // Nothing waits on the small side there.
      family.push_back({.kind = Kind::kStatic, .m_small = small, .m_large = large});
    }
  }
  return family;
}

std::vector<BatchingPolicy> FixedWaitFamily(const SimulationSetup& setup) {
  const double unit = setup.small(1, 1);
  std::vector<BatchingPolicy> family;
  for (const double small : kSmallWaits) {
    if (setup.shared_device && small > 0) continue;
    for (const double large : kLargeWaits) {
      family.push_back(
          {.kind = Kind::kFixedWait, .wait_small_ms = small * unit, .wait_large_ms = large * unit});
    }
  }
  return family;
}

}  // namespace

absl::StatusOr<BatchingPolicy> BestOfFamily(const SimulationSetup& setup, Kind kind) {
  TR_RETURN_IF_ERROR(CheckSetup(setup));
  const TunerOptions options;
  if (kind == Kind::kModel) {
    TR_ASSIGN_OR_RETURN(const TunedPolicy tuned, Tune(setup, options));
    return tuned.policy;
  }
  if (kind != Kind::kStatic && kind != Kind::kFixedWait) return BatchingPolicy{.kind = kind};
  // The member that waits for nothing stays a candidate however it does in the first round.
  std::vector<BatchingPolicy> family =
      kind == Kind::kStatic ? StaticFamily(setup) : FixedWaitFamily(setup);
  TR_ASSIGN_OR_RETURN(std::vector<ScoredPolicy> scored,
                      ScoreAtLength(setup, {family.front()}, options));
  family.erase(family.begin());
  TR_ASSIGN_OR_RETURN(const std::vector<ScoredPolicy> others,
                      ScoreFinalists(setup, family, options));
  scored.insert(scored.end(), others.begin(), others.end());
  return std::min_element(scored.begin(), scored.end(), Faster)->policy;
}

}  // namespace tokenrouter
