#include "tests/bench/batching/timed_part.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/batching_model/policy_name.h"
#include "libs/batching_offline/baseline_search.h"
#include "libs/status/status_macros.h"
#include "tests/bench/batching/timed_system.h"
#include "tests/bench/measure/load_row.h"
#include "tools/simulate/paired_ratio.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;
using Kind = BatchingPolicy::Kind;

// Long compared with the prompts, which the simulator does not model.
constexpr int kPromptTokens = 4;
constexpr int kNewTokens = 2048;

// One policy on one load: its processes, the simulator's prediction and the measurement.
struct Contender {
  std::string name, parameters;
  double simulated = 0;
  TimedSystem system;
  PairedRatio share;     // Measured over simulated.
  PairedRatio of_model;  // The model's rate over this one's, burst by burst.
  TimedBurst last;
};

std::vector<std::string> FlagsOf(const BatchingPolicy& policy, Kind asked) {
  std::vector<std::string> flags = {absl::StrCat("--batching=", PolicyName(asked))};
  // The scheduler refuses parameters of other policies.
  if (asked == Kind::kStatic) {
    flags.push_back(absl::StrCat("--m_small=", policy.m_small));
    flags.push_back(absl::StrCat("--m_large=", policy.m_large));
  } else if (asked == Kind::kFixedWait) {
    flags.push_back(absl::StrCat("--wait_small_ms=", policy.wait_small_ms));
    flags.push_back(absl::StrCat("--wait_large_ms=", policy.wait_large_ms));
  }
  return flags;
}

absl::StatusOr<Contender> Enter(const Load& load, const BatchingPolicy& policy, Kind asked,
                                double simulated) {
  const std::string cv = absl::StrCat(load.set, ",cv=", load.setup.noise_cv);
  TR_ASSIGN_OR_RETURN(TimedSystem system,
                      TimedSystem::Start({.small = cv,
                                          .large = cv,
                                          .devices = load.devices,
                                          .scheduler_flags = FlagsOf(policy, asked)}));
  return Contender{
      .name = std::string(PolicyName(asked)),
      .parameters = asked == Kind::kModel ? "online" : DescribePolicy(policy, load.devices == 1),
      .simulated = simulated,
      .system = std::move(system),
      .share = {},
      .of_model = {},
      .last = {}};
}

absl::Status AddBurst(const Load& load, int seconds, Contender* contender) {
  TR_ASSIGN_OR_RETURN(contender->last,
                      contender->system.Run({.requests = load.setup.requests,
                                             .prompt_tokens = kPromptTokens,
                                             .new_tokens = kNewTokens,
                                             .r = load.setup.r,
                                             .service_mode = api::SERVICE_MODE_ROUTED,
                                             .duration = absl::Seconds(seconds)}));
  contender->share.Add(contender->last.load.committed_per_s, contender->simulated);
  return absl::OkStatus();
}

void Print(const Load& load, const Contender& contender) {
  json::object row = RowOf(load, "timed");
  row["policy"] = contender.name;
  row["parameters"] = contender.parameters;
  row["simulated"] = contender.simulated;
  row["measured"] = contender.share.MeanNumerator();
  row["share_of_simulated"] = contender.share.Mean();
  if (contender.share.count() > 1) row["ci95"] = contender.share.HalfWidth95();
  row["bursts"] = contender.share.count();
  row["large_share"] = contender.last.load.large_share;
  row["gap_ms_p50"] = contender.last.load.gap_p50_ms;
  row["gap_ms_p99"] = contender.last.load.gap_p99_ms;
  row["cpu_idle"] = contender.last.cpu_idle;
  row["scheduler_us_per_token"] = contender.last.scheduler_us;
  std::cout << json::serialize(row) << std::endl;
}

// The model first.
absl::StatusOr<std::vector<Contender>> EnterAll(const BatchingBenchOptions& options,
                                                const Load& load) {
  TR_ASSIGN_OR_RETURN(const LoadComparison best, CompareWithBaselines(load, options.grid));
  std::vector<Contender> contenders;
  TR_ASSIGN_OR_RETURN(Contender model, Enter(load, best.model, Kind::kModel, best.model_per_s));
  contenders.push_back(std::move(model));
  for (const std::string& name : options.against) {
    BatchingPolicy policy = best.best_baseline;
    if (name != "best") {
      TR_ASSIGN_OR_RETURN(const Kind kind, ParsePolicyKind(name));
      TR_ASSIGN_OR_RETURN(policy, BestOfFamily(load.setup, kind));
      if (kind == best.best_baseline.kind) continue;
    }
    TR_ASSIGN_OR_RETURN(const double simulated, FreshRate(load.setup, policy));
    TR_ASSIGN_OR_RETURN(Contender baseline, Enter(load, policy, policy.kind, simulated));
    contenders.push_back(std::move(baseline));
  }
  return contenders;
}

void PrintRatio(const Load& load, const Contender& model, const Contender& baseline) {
  json::object row = RowOf(load, "timed_ratio");
  row["policy"] = model.name;
  row["baseline"] = baseline.parameters;
  row["simulated_ratio"] = model.simulated / baseline.simulated;
  row["ratio"] = baseline.of_model.Mean();
  if (baseline.of_model.count() > 1) {
    const double half = baseline.of_model.HalfWidth95();
    row["ci95"] = json::array{baseline.of_model.Mean() - half, baseline.of_model.Mean() + half};
  }
  std::cout << json::serialize(row) << std::endl;
}

absl::Status RunLoad(const BatchingBenchOptions& options, const Load& load) {
  TR_ASSIGN_OR_RETURN(std::vector<Contender> contenders, EnterAll(options, load));
  for (Contender& contender : contenders) {
    TR_RETURN_IF_ERROR(AddBurst(load, options.learn_seconds, &contender));
    contender.share = {};  // The learning phase is not measured.
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      const size_t turn = round % 2 == 0 ? i : contenders.size() - 1 - i;
      TR_RETURN_IF_ERROR(AddBurst(load, options.seconds, &contenders[turn]));
    }
    for (Contender& contender : contenders) {
      contender.of_model.Add(contenders.front().last.load.committed_per_s,
                             contender.last.load.committed_per_s);
    }
  }
  for (const Contender& contender : contenders) Print(load, contender);
  for (size_t i = 1; i < contenders.size(); ++i)
    PrintRatio(load, contenders.front(), contenders[i]);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTimedPart(const BatchingBenchOptions& options) {
  TR_ASSIGN_OR_RETURN(const std::vector<Load> loads, LoadsOf(options.grid));
  for (const Load& load : loads) TR_RETURN_IF_ERROR(RunLoad(options, load));
  return absl::OkStatus();
}

}  // namespace tokenrouter
