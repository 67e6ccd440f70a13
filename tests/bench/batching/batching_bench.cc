// Proof of the batching model. JSON rows, by part:
//   grid      simulated: the model against the best of greedy, static, fixed wait, longest queue
//   exact     simulated: the model against the optimum of the exact solver, up to 16 requests
//   cores     the real cores in simulated time, two devices: against the simulator and baselines
//   timed     real processes on timed engines: measured against simulated, model against baselines
//   large_kv  real processes on timed engines: a small KV pool of the large model beside a full one
//   overhead  real processes: latency that routing adds, processor time per token
//   plot_*    draws the rows of an earlier run: --rows=FILE --plot=FILE.svg
//
//   batching_bench [--part=grid,exact,cores,timed,large_kv,overhead] [--set=h200] [--n=1,16,64]
// serve_bench measures the real pair. timed and overhead need a quiet machine.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "libs/config/settings.h"
#include "libs/status/status_macros.h"
#include "tests/bench/batching/batching_options.h"
#include "tests/bench/batching/cores_part.h"
#include "tests/bench/batching/grid_part.h"
#include "tests/bench/batching/large_kv_part.h"
#include "tests/bench/batching/overhead_part.h"
#include "tests/bench/batching/plot_part.h"
#include "tests/bench/batching/timed_part.h"
#include "tests/bench/measure/bench_parts.h"

namespace tokenrouter {
namespace {

const BenchParts<BatchingBenchOptions>& Parts() {
  static const auto* const parts = new BenchParts<BatchingBenchOptions>{
      {"grid", RunGridPart},   {"exact", RunExactPart},      {"cores", RunCoresPart},
      {"timed", RunTimedPart}, {"large_kv", RunLargeKvPart}, {"overhead", RunOverheadPart},
      {"plot_grid", PlotGrid}, {"plot_timed", PlotTimed}};
  return *parts;
}

absl::Status Run(int argc, char** argv) {
  std::string part = "grid", sets, against = "best,greedy";
  BatchingBenchOptions options;
  Settings settings("batching_bench", "Proof of the batching model: simulated and on processes");
  settings.Add("part", &part, "list of " + PartNames(Parts()));
  settings.Add("rows", &options.rows, "plot_*: file of the rows of an earlier run");
  settings.Add("plot", &options.plot, "plot_*: SVG to write");
  settings.Add("set", &sets, "list of named curve sets; empty: all five of the study");
  settings.Add("devices", &options.grid.devices, 1, 2, "list of 1 and 2");
  settings.Add("n", &options.grid.requests, 1, 4096, "list of numbers of requests");
  settings.Add("r", &options.grid.r, 0.001, 0.999, "list of routed shares");
  settings.Add("noise", &options.grid.noise, 0.0, 1.0, "list of relative spreads of step times");
  settings.Add("small_workers", &options.grid.small_workers, 1, 64, "grid: as of simulate");
  settings.Add("large_workers", &options.grid.large_workers, 1, 64, "grid: as of simulate");
  settings.Add("hop_ms", &options.grid.hop_ms, 0.0, 1000.0, "grid: as of simulate");
  settings.Add("distributed", &options.grid.distributed, "grid: as of simulate");
  settings.Add("against", &against, "timed: list of best and names of baselines");
  settings.Add("seconds", &options.seconds, 1, 600, "timed, overhead: measured time of a burst");
  settings.Add("learn_seconds", &options.learn_seconds, 1, 600, "timed, overhead: before that");
  settings.Add("rounds", &options.rounds, 1, 100, "timed: bursts of each policy, interleaved");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  if (!sets.empty()) options.grid.sets = absl::StrSplit(sets, ',');
  options.against = absl::StrSplit(against, ',', absl::SkipEmpty());
  return RunParts(Parts(), part, options);
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) { return tokenrouter::BenchMain(tokenrouter::Run, argc, argv); }
