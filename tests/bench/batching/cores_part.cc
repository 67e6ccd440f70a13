#include "tests/bench/batching/cores_part.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "libs/batching_model/policy_name.h"
#include "libs/status/status_macros.h"
#include "tests/bench/measure/load_row.h"
#include "tests/simulation/closed_loop.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;
using Kind = BatchingPolicy::Kind;
using simulation::ClosedLoopOptions;
using simulation::ClosedLoopResult;
using simulation::PromptKind;

constexpr PromptKind kPrompts[] = {simulation::kHardlyAnyPrompts, simulation::kPromptsOfPeople};
constexpr int kNewTokens = 512;
constexpr int kRounds = 12;

absl::StatusOr<double> RateOf(const Load& load, const BatchingPolicy& policy,
                              const PromptKind& prompts) {
  ClosedLoopOptions options;
  options.set = load.set;
  options.requests = load.setup.requests;
  options.r = load.setup.r;
  options.new_tokens = kNewTokens;
  options.rounds = kRounds;
  options.core.batching = policy;
  options.SetPrompts(prompts);
  TR_ASSIGN_OR_RETURN(const ClosedLoopResult result, RunClosedLoop(options));
  return result.committed_per_s;
}

// A policy on one load, and the simulator's prediction of it.
struct Contender {
  BatchingPolicy policy;
  std::string parameters;
  double simulated = 0;
};

absl::StatusOr<Contender> Enter(const Load& load, const BatchingPolicy& policy) {
  TR_ASSIGN_OR_RETURN(const double simulated, FreshRate(load.setup, policy));
  return Contender{policy, DescribePolicy(policy, /*shared_device=*/false), simulated};
}

// The model comes first; its parameters come from the plans that are made during the run.
absl::StatusOr<std::vector<Contender>> EnterAll(const Load& load, const LoadGrid& grid) {
  TR_ASSIGN_OR_RETURN(const LoadComparison best, CompareWithBaselines(load, grid));
  std::vector<Contender> contenders;
  TR_ASSIGN_OR_RETURN(const double simulated, FreshRate(load.setup, best.model));
  contenders.push_back({{.kind = Kind::kModel}, "online", simulated});
  TR_ASSIGN_OR_RETURN(Contender baseline, Enter(load, best.best_baseline));
  contenders.push_back(std::move(baseline));
  if (best.best_baseline.kind == Kind::kGreedy) return contenders;
  TR_ASSIGN_OR_RETURN(Contender greedy, Enter(load, {.kind = Kind::kGreedy}));
  contenders.push_back(std::move(greedy));
  return contenders;
}

json::object RowWith(const Load& load, const PromptKind& prompts, const char* part) {
  json::object row = RowOf(load, part);
  row["prompts"] = prompts.name;
  row["new_tokens"] = kNewTokens;
  return row;
}

absl::Status RunLoad(const Load& load, const PromptKind& prompts,
                     const std::vector<Contender>& contenders) {
  double model_rate = 0;
  for (const Contender& contender : contenders) {
    TR_ASSIGN_OR_RETURN(const double rate, RateOf(load, contender.policy, prompts));
    json::object row = RowWith(load, prompts, "cores");
    row["policy"] = std::string(PolicyName(contender.policy.kind));
    row["parameters"] = contender.parameters;
    row["committed_per_s"] = rate;
    row["share_of_simulated"] = rate / contender.simulated;
    std::cout << json::serialize(row) << std::endl;
    if (&contender == &contenders.front()) {
      model_rate = rate;
      continue;
    }
    json::object ratio = RowWith(load, prompts, "cores_ratio");
    ratio["baseline"] = contender.parameters;
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
    TR_ASSIGN_OR_RETURN(const std::vector<Contender> contenders, EnterAll(load, grid));
    for (const PromptKind& prompts : kPrompts)
      TR_RETURN_IF_ERROR(RunLoad(load, prompts, contenders));
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
