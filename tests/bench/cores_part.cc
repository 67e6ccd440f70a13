#include "tests/bench/cores_part.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "libs/batching_model/policy_name.h"
#include "libs/status/status_macros.h"
#include "tests/simulation/closed_loop.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;
using simulation::ClosedLoopOptions;
using simulation::ClosedLoopResult;

// Without prompts as the simulator has it; with those of people, read ahead.
struct Prompts {
  const char* name;
  int least, most;
  LargePrefill when;
};
constexpr Prompts kPrompts[] = {{"8-16", 8, 16, LargePrefill::kLazy},
                                {"128-256", 128, 256, LargePrefill::kIdle}};
constexpr int kNewTokens = 512;
constexpr int kRounds = 12;

absl::StatusOr<double> RateOf(const Load& load, const BatchingPolicy& policy,
                              const Prompts& prompts) {
  ClosedLoopOptions options;
  options.set = load.set;
  options.requests = load.setup.requests;
  options.r = load.setup.r;
  options.least_prompt = prompts.least;
  options.most_prompt = prompts.most;
  options.new_tokens = kNewTokens;
  options.rounds = kRounds;
  options.core.batching = policy;
  options.core.large_prefill = prompts.when;
  TR_ASSIGN_OR_RETURN(const ClosedLoopResult result, RunClosedLoop(options));
  return result.committed_per_s;
}

json::object RowOf(const Load& load, const Prompts& prompts, const char* part) {
  return {{"bench", "batching"},     {"part", part},
          {"set", load.set},         {"n", load.setup.requests},
          {"r", load.setup.r},       {"devices", load.devices},
          {"prompts", prompts.name}, {"new_tokens", kNewTokens}};
}

absl::Status RunLoad(const Load& load, const Prompts& prompts, const LoadComparison& best) {
  double model_rate = 0;
  for (const BatchingPolicy& policy : {best.model, best.best_baseline, BatchingPolicy{}}) {
    const bool model = model_rate == 0;
    BatchingPolicy asked = policy;
    if (model) asked = {.kind = BatchingPolicy::Kind::kModel};  // Its plans make the rest.
    TR_ASSIGN_OR_RETURN(const double rate, RateOf(load, asked, prompts));
    TR_ASSIGN_OR_RETURN(const double simulated, FreshRate(load.setup, policy));
    const std::string parameters = DescribePolicy(policy, /*shared_device=*/false);
    json::object row = RowOf(load, prompts, "cores");
    row["policy"] = std::string(PolicyName(asked.kind));
    row["parameters"] = model ? "online" : parameters;
    row["committed_per_s"] = rate;
    row["share_of_simulated"] = rate / simulated;
    std::cout << json::serialize(row) << std::endl;
    if (model) {
      model_rate = rate;
      continue;
    }
    json::object ratio = RowOf(load, prompts, "cores_ratio");
    ratio["baseline"] = parameters;
    ratio["ratio"] = model_rate / rate;
    std::cout << json::serialize(ratio) << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunCoresPart(const BatchingBenchOptions& options) {
  LoadGrid grid = options.grid;
  grid.devices = {2};
  grid.noise = {0};
  TR_ASSIGN_OR_RETURN(const std::vector<Load> loads, LoadsOf(grid));
  for (const Load& load : loads) {
    TR_ASSIGN_OR_RETURN(const LoadComparison best, CompareWithBaselines(load, grid));
    for (const Prompts& prompts : kPrompts) TR_RETURN_IF_ERROR(RunLoad(load, prompts, best));
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
