// The best that any batching policy can reach on a load, where it can be computed: the exact solver
// on two devices, the best threshold on a shared one. Both know an idealised load only: steps last
// their mean, on a grid, and every large row brings the mean number of ids. A policy's gap is
// therefore taken on that same load; on the real one both lose what the variation costs. Threads:
// pure.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "libs/batching_model/simulator.h"

namespace tokenrouter {

struct Optimum {
  double committed_per_s = 0;
  SimulationSetup idealised;  // Its times are in grid steps, so that sums of them are exact.
  double grid_ms = 1;
};

// nullopt for more requests than can be solved (16 on two devices; 512 on a shared one, 64 for q <
// 1), with a handoff latency or several workers of a side, which the solvers do not model, and
// where the solver does not settle.
absl::StatusOr<std::optional<Optimum>> FindOptimum(const SimulationSetup& setup);

// Share of the optimum that the best policy of a family misses; slightly below 0 within the error
// of a simulation.
absl::StatusOr<double> GapToOptimum(const Optimum& optimum, BatchingPolicy::Kind kind);

}  // namespace tokenrouter
