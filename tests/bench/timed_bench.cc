// How close the real scheduler and worker processes come to the simulator on timed engines: a
// closed loop through Submit, two devices. One JSON row per (curve set, requests).
//   timed_bench [--set=h200] [--r=0.1] [--requests=1,16,64] [--seconds=10]
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libs/batching_model/simulator.h"
#include "libs/config/settings.h"
#include "libs/inference/step_curve.h"
#include "libs/status/status_macros.h"
#include "tests/bench/submit_loop.h"
#include "tests/support/cluster.h"

namespace tokenrouter {
namespace {

struct Options {
  std::string set = "h200";
  double r = 0.1;
  std::string requests = "1,16,64";
  int32_t seconds = 10;
};

absl::StatusOr<StepCost> CostOf(const std::string& set, Role role) {
  TR_ASSIGN_OR_RETURN(const StepCurve curve, StepCurve::Parse(set, role));
  return StepCost(
      [curve](int rows, int64_t ids) { return absl::ToDoubleMilliseconds(curve.Mean(rows, ids)); });
}

absl::Status RunCell(const Options& options, int requests) {
  SimulationSetup setup{.requests = requests, .r = options.r};
  TR_ASSIGN_OR_RETURN(setup.small, CostOf(options.set, Role::kSmall));
  TR_ASSIGN_OR_RETURN(setup.large, CostOf(options.set, Role::kLarge));
  TR_ASSIGN_OR_RETURN(const SimulationResult simulated, Simulate(setup, {}));
  TR_ASSIGN_OR_RETURN(
      const auto cluster,
      Cluster::Start({.worker_flags = {"--engine=timed", "--timed_curve=" + options.set},
                      .start_gateway = false}));
  TR_ASSIGN_OR_RETURN(
      const SubmitLoopResult measured,
      RunSubmitLoop({.scheduler = absl::StrCat("127.0.0.1:", cluster->scheduler().port),
                     .requests = requests,
                     .r = options.r,
                     .duration = absl::Seconds(options.seconds)}));
  const boost::json::object row = {
      {"bench", "timed"},
      {"set", options.set},
      {"devices", 2},
      {"n", requests},
      {"r", options.r},
      {"policy", "greedy"},
      {"simulated", simulated.committed_per_s},
      {"measured", measured.committed_per_s},
      {"share_of_simulated", measured.committed_per_s / simulated.committed_per_s},
      {"large_share", measured.large_share},
      {"gap_ms_p50", measured.gap_p50_ms},
      {"gap_ms_p99", measured.gap_p99_ms}};
  std::cout << boost::json::serialize(row) << std::endl;
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  Options options;
  Settings settings("timed_bench", "Real processes on timed engines against the simulator");
  settings.Add("set", &options.set, "curve set");
  settings.Add("r", &options.r, 0.001, 0.999, "share of routed tokens");
  settings.Add("requests", &options.requests, "comma-separated numbers of concurrent requests");
  settings.Add("seconds", &options.seconds, 1, 600, "measured time per cell");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  for (const auto text : absl::StrSplit(options.requests, ',')) {
    int requests = 0;
    if (!absl::SimpleAtoi(text, &requests))
      return absl::InvalidArgumentError("--requests: not a number");
    TR_RETURN_IF_ERROR(RunCell(options, requests));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) {
  const absl::Status status = tokenrouter::Run(argc, argv);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
