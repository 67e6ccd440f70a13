#include "tools/simulate/load_grid.h"

#include <algorithm>
#include <limits>

#include "libs/batching_model/policy_name.h"
#include "libs/batching_offline/baseline_search.h"
#include "libs/status/status_macros.h"
#include "libs/synthetic/step_curve.h"
#include "tools/simulate/paired_ratio.h"

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;

constexpr uint64_t kFreshSeed = 1000;  // Far from the tuner's.
constexpr int64_t kChunkSteps = 40000, kChunkRows = 1000000;
constexpr int kLeastChunks = 4;

absl::StatusOr<StepCost> CostOf(const std::string& set, Role role) {
  TR_ASSIGN_OR_RETURN(const StepCurve curve, StepCurve::Parse(set, role));
  return StepCost(
      [curve](int rows, int64_t ids) { return absl::ToDoubleMilliseconds(curve.Mean(rows, ids)); });
}

absl::StatusOr<double> ChunkRate(const SimulationSetup& setup, const BatchingPolicy& policy,
                                 int chunk) {
  SimulationSetup run = setup;
  run.duration_ms = std::numeric_limits<double>::max();
  run.max_steps = kChunkSteps;
  run.max_rows = kChunkRows;
  run.desynchronised = true;
  run.seed = kFreshSeed + static_cast<uint64_t>(chunk);
  TR_ASSIGN_OR_RETURN(const SimulationResult result, Simulate(run, policy));
  return result.committed_per_s;
}

// The fastest of the four baselines, each at its best, over the first chunks.
absl::StatusOr<BatchingPolicy> BestBaseline(const SimulationSetup& setup) {
  BatchingPolicy best;
  double best_rate = -1;
  for (const Kind kind : AllPolicyKinds()) {
    if (kind == Kind::kModel) continue;
    TR_ASSIGN_OR_RETURN(const BatchingPolicy policy, BestOfFamily(setup, kind));
    TR_ASSIGN_OR_RETURN(const double rate, FreshRate(setup, policy));
    if (rate > best_rate) {
      best_rate = rate;
      best = policy;
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<std::vector<Load>> LoadsOf(const LoadGrid& grid) {
  std::vector<Load> loads;
  for (const std::string& set : grid.sets) {
    SimulationSetup setup{.small_workers = grid.small_workers,
                          .large_workers = grid.large_workers,
                          .distributed = grid.distributed,
                          .hop_ms = grid.hop_ms};
    TR_ASSIGN_OR_RETURN(setup.small, CostOf(set, Role::kSmall));
    TR_ASSIGN_OR_RETURN(setup.large, CostOf(set, Role::kLarge));
    for (const int devices : grid.devices) {
      for (const int requests : grid.requests) {
        for (const double r : grid.r) {
          for (const double noise : grid.noise) {
            setup.shared_device = devices == 1;
            setup.requests = requests;
            setup.r = r;
            setup.noise_cv = noise;
            TR_RETURN_IF_ERROR(CheckSetup(setup));
            loads.push_back({set, devices, setup});
          }
        }
      }
    }
  }
  return loads;
}

absl::StatusOr<double> FreshRate(const SimulationSetup& setup, const BatchingPolicy& policy) {
  double sum = 0;
  for (int chunk = 0; chunk < kLeastChunks; ++chunk) {
    TR_ASSIGN_OR_RETURN(const double rate, ChunkRate(setup, policy, chunk));
    sum += rate;
  }
  return sum / kLeastChunks;
}

absl::StatusOr<LoadComparison> CompareWithBaselines(const Load& load, const LoadGrid& grid) {
  LoadComparison comparison;
  TR_ASSIGN_OR_RETURN(comparison.model, BestOfFamily(load.setup, Kind::kModel));
  TR_ASSIGN_OR_RETURN(comparison.best_baseline, BestBaseline(load.setup));
  PairedRatio ratio;
  const auto most =
      static_cast<int>(std::max<int64_t>(kLeastChunks, grid.most_steps / kChunkSteps));
  while (ratio.count() < kLeastChunks ||
         (ratio.Error() > grid.least_error && ratio.count() < most)) {
    TR_ASSIGN_OR_RETURN(const double model, ChunkRate(load.setup, comparison.model, ratio.count()));
    TR_ASSIGN_OR_RETURN(const double baseline,
                        ChunkRate(load.setup, comparison.best_baseline, ratio.count()));
    ratio.Add(model, baseline);
  }
  comparison.model_per_s = ratio.MeanNumerator();
  comparison.baseline_per_s = ratio.MeanDenominator();
  comparison.ratio = ratio.Mean();
  comparison.ratio_error = ratio.Error();
  return comparison;
}

}  // namespace tokenrouter
