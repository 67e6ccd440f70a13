#include "tests/bench/batching/grid_part.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <iostream>
#include <optional>
#include <vector>

#include "libs/batching_model/policy_name.h"
#include "libs/status/status_macros.h"
#include "tests/bench/measure/load_row.h"
#include "tools/simulate/optimum.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr double kAllowedLoss = 0.01;
constexpr int kMostExactRequests = 16;

// The summary of a part: how many loads were run and how many lost too much.
class Summary {
 public:
  void Add(double loss) {
    ++cells_;
    worst_ = std::max(worst_, loss);
    beyond_ += loss > kAllowedLoss;
    sum_ += loss;
  }
  void Print(const char* part) const {
    std::cout << json::serialize(json::object{{"bench", "batching"},
                                              {"part", part},
                                              {"cells", cells_},
                                              {"mean_loss", cells_ > 0 ? sum_ / cells_ : 0},
                                              {"worst_loss", worst_},
                                              {"beyond_one_percent", beyond_}})
              << std::endl;
  }

 private:
  int cells_ = 0, beyond_ = 0;
  double worst_ = -1, sum_ = 0;
};

}  // namespace

absl::Status RunGridPart(const BatchingBenchOptions& options) {
  TR_ASSIGN_OR_RETURN(const std::vector<Load> loads, LoadsOf(options.grid));
  Summary summary;
  for (const Load& load : loads) {
    TR_ASSIGN_OR_RETURN(const LoadComparison comparison, CompareWithBaselines(load, options.grid));
    json::object row = RowOf(load, "grid");
    row["small_workers"] = load.setup.small_workers;
    row["large_workers"] = load.setup.large_workers;
    row["policy"] = "model";
    row["parameters"] = DescribePolicy(comparison.model, load.devices == 1);
    row["simulated"] = comparison.model_per_s;
    row["best_baseline"] = DescribePolicy(comparison.best_baseline, load.devices == 1);
    row["best_baseline_simulated"] = comparison.baseline_per_s;
    row["ratio"] = comparison.ratio;
    row["ratio_error"] = comparison.ratio_error;
    std::cout << json::serialize(row) << std::endl;
    summary.Add(1 - comparison.ratio);
  }
  summary.Print("grid_summary");
  return absl::OkStatus();
}

absl::Status RunExactPart(const BatchingBenchOptions& options) {
  LoadGrid grid = options.grid;
  grid.noise = {0};
  std::erase_if(grid.requests, [](int requests) { return requests > kMostExactRequests; });
  TR_ASSIGN_OR_RETURN(const std::vector<Load> loads, LoadsOf(grid));
  Summary summary;
  for (const Load& load : loads) {
    TR_ASSIGN_OR_RETURN(const std::optional<Optimum> optimum, FindOptimum(load.setup));
    json::object row = RowOf(load, "exact");
    row["policy"] = "model";
    row["optimal"] = nullptr;
    if (optimum) {
      TR_ASSIGN_OR_RETURN(const double gap, GapToOptimum(*optimum, BatchingPolicy::Kind::kModel));
      row["optimal"] = optimum->committed_per_s;
      row["gap_to_optimum"] = gap;
      summary.Add(gap);
    }
    std::cout << json::serialize(row) << std::endl;
  }
  summary.Print("exact_summary");
  return absl::OkStatus();
}

}  // namespace tokenrouter
