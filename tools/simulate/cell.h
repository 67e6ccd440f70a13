// One cell of `simulate`: a load under a policy, beside large-only service and the optimum.
// Threads: pure.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/batching_model/simulator.h"
#include "tools/simulate/simulate_options.h"

namespace tokenrouter {

struct Cell {
  int requests = 0;
  double r = 0;
  BatchingPolicy::Kind asked = BatchingPolicy::Kind::kModel;
  BatchingPolicy policy;  // The best of that family; greedy where the tuner found nothing better.
  SimulationResult simulated;
  double large_alone_per_s = 0;
  // No value: it is not computable for this load. See tools/simulate/optimum.h.
  std::optional<double> optimal_per_s;
  std::optional<double> gap_to_optimum;

  double MultipleOfLargeAlone() const { return simulated.committed_per_s / large_alone_per_s; }
};

// The cells of one load, one per policy, each at its best parameters.
absl::StatusOr<std::vector<Cell>> SimulateLoad(const SimulateOptions& options, int requests,
                                               double r);

std::string TableHeader();
std::string TableLine(const Cell& cell, const SimulateOptions& options);
boost::json::object JsonRow(const Cell& cell, const SimulateOptions& options);

}  // namespace tokenrouter
