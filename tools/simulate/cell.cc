#include "tools/simulate/cell.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libs/batching_model/policy_name.h"
#include "libs/batching_offline/baseline_search.h"
#include "libs/status/status_macros.h"
#include "tools/simulate/optimum.h"

namespace tokenrouter {

absl::StatusOr<std::vector<Cell>> SimulateLoad(const SimulateOptions& options, int requests,
                                               double r) {
  const SimulationSetup setup = options.Setup(requests, r);
  TR_ASSIGN_OR_RETURN(const std::optional<Optimum> optimum, FindOptimum(setup));
  std::vector<Cell> cells;
  for (const BatchingPolicy::Kind kind : options.policies) {
    Cell cell{.requests = requests,
              .r = r,
              .asked = kind,
              .large_alone_per_s = AloneRate(setup.large, requests)};
    TR_ASSIGN_OR_RETURN(cell.policy, BestOfFamily(setup, kind));
    TR_ASSIGN_OR_RETURN(cell.simulated, Simulate(setup, cell.policy));
    if (optimum) {
      cell.optimal_per_s = optimum->committed_per_s;
      TR_ASSIGN_OR_RETURN(cell.gap_to_optimum, GapToOptimum(*optimum, kind));
    }
    cells.push_back(cell);
  }
  return cells;
}

namespace {

std::string Describe(const Cell& cell, const SimulateOptions& options) {
  const std::string policy = DescribePolicy(cell.policy, options.devices == 1);
  if (cell.policy.kind == cell.asked) return policy;
  return absl::StrCat(PolicyName(cell.asked), ": ", policy);
}

}  // namespace

std::string TableHeader() {
  return absl::StrFormat("%5s %6s  %-24s %10s %8s %8s %9s %9s %8s", "n", "r", "policy", "tokens/s",
                         "x alone", "gap", "p50 ms", "p99 ms", "busy S/L");
}

std::string TableLine(const Cell& cell, const SimulateOptions& options) {
  const std::optional<double> gap = cell.gap_to_optimum;
  const SimulationResult& result = cell.simulated;
  return absl::StrFormat("%5d %6.3g  %-24s %10.1f %7.2fx %8s %9.1f %9.1f %4.0f/%-3.0f",
                         cell.requests, cell.r, Describe(cell, options), result.committed_per_s,
                         cell.MultipleOfLargeAlone(),
                         gap ? absl::StrFormat("%.2f %%", 100 * *gap) : "-", result.gap_p50_ms,
                         result.gap_p99_ms, 100 * result.busy_small, 100 * result.busy_large);
}

boost::json::object JsonRow(const Cell& cell, const SimulateOptions& options) {
  const SimulationResult& result = cell.simulated;
  boost::json::object row = {
      {"set", options.set},
      {"devices", options.devices},
      {"small_workers", options.small_workers},
      {"large_workers", options.large_workers},
      {"distributed", options.distributed},
      {"n", cell.requests},
      {"r", cell.r},
      {"q", options.q},
      {"noise", options.noise},
      {"hop_ms", options.hop_ms},
      {"max_step_ms", options.max_step_ms},
      {"seconds", options.seconds},
      {"seed", options.seed},
      {"policy", std::string(PolicyName(cell.asked))},
      {"parameters", Describe(cell, options)},
      {"committed_per_s", result.committed_per_s},
      {"rows_per_s", result.rows_per_s},
      {"large_alone_per_s", cell.large_alone_per_s},
      {"multiple_of_large_alone", cell.MultipleOfLargeAlone()},
      {"gap_p50_ms", result.gap_p50_ms},
      {"gap_p99_ms", result.gap_p99_ms},
      {"mean_batch_small", result.mean_batch_small},
      {"mean_batch_large", result.mean_batch_large},
      {"busy_small", result.busy_small},
      {"busy_large", result.busy_large},
  };
  row["optimal_per_s"] = nullptr;
  row["gap_to_optimum"] = nullptr;
  if (cell.optimal_per_s) {
    row["optimal_per_s"] = *cell.optimal_per_s;
    row["gap_to_optimum"] = *cell.gap_to_optimum;
  }
  return row;
}

}  // namespace tokenrouter
