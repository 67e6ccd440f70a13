// Proof of the batching model. JSON rows, by part:
//   grid      simulated: the model against the best of greedy, static, fixed wait, longest queue
//   exact     simulated: the model against the optimum of the exact solver, up to 16 requests
//   timed     real processes on timed engines: measured against simulated, model against baselines
//   large_kv  real processes on timed engines: a small KV pool of the large model against all it
//   wants overhead  real processes: latency that routing adds, processor time per token plot_*
//   draws the rows of an earlier run: --rows=FILE --plot=FILE.svg batching_bench
//   [--part=grid,exact,timed,large_kv,overhead] [--set=h200] [--devices=1,2] [--n=1,16,64]
// The real pair is serve_bench. timed and overhead want a quiet machine.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "libs/config/settings.h"
#include "libs/status/status_macros.h"
#include "tests/bench/batching_options.h"
#include "tests/bench/bench_parts.h"
#include "tests/bench/grid_part.h"
#include "tests/bench/large_kv_part.h"
#include "tests/bench/overhead_part.h"
#include "tests/bench/plot_part.h"
#include "tests/bench/timed_part.h"

namespace tokenrouter {
namespace {

const BenchParts<BatchingBenchOptions>& Parts() {
  static const auto* const parts = new BenchParts<BatchingBenchOptions>{
      {"grid", RunGridPart},        {"exact", RunExactPart},       {"timed", RunTimedPart},
      {"large_kv", RunLargeKvPart}, {"overhead", RunOverheadPart}, {"plot_grid", PlotGrid},
      {"plot_timed", PlotTimed}};
  return *parts;
}

template <typename Number, typename Read>
absl::Status ReadList(const char* flag, const std::string& text, Read read,
                      std::vector<Number>* numbers) {
  if (text.empty()) return absl::OkStatus();
  numbers->clear();
  for (const auto item : absl::StrSplit(text, ',')) {
    Number number{};
    if (!read(item, &number)) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", text, " is not numbers"));
    }
    numbers->push_back(number);
  }
  return absl::OkStatus();
}

// Empty lists keep the grid's own.
struct Typed {
  std::string part = "grid", set, devices, n, r, noise, against = "best,greedy";
};

absl::Status ReadTyped(const Typed& typed, BatchingBenchOptions* options) {
  const auto whole = [](absl::string_view text, int* number) {
    return absl::SimpleAtoi(text, number);
  };
  const auto real = [](absl::string_view text, double* number) {
    return absl::SimpleAtod(text, number);
  };
  if (!typed.set.empty()) options->grid.sets = absl::StrSplit(typed.set, ',');
  TR_RETURN_IF_ERROR(ReadList("devices", typed.devices, whole, &options->grid.devices));
  TR_RETURN_IF_ERROR(ReadList("n", typed.n, whole, &options->grid.requests));
  TR_RETURN_IF_ERROR(ReadList("r", typed.r, real, &options->grid.r));
  TR_RETURN_IF_ERROR(ReadList("noise", typed.noise, real, &options->grid.noise));
  for (const auto name : absl::StrSplit(typed.against, ',', absl::SkipEmpty())) {
    options->against.emplace_back(name);
  }
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  Typed typed;
  BatchingBenchOptions options;
  Settings settings("batching_bench", "Proof of the batching model: simulated and on processes");
  settings.Add("part", &typed.part, "list of " + PartNames(Parts()));
  settings.Add("rows", &options.rows, "plot_*: file of the rows of an earlier run");
  settings.Add("plot", &options.plot, "plot_*: SVG to write");
  settings.Add("set", &typed.set, "list of named curve sets; empty: all five of the study");
  settings.Add("devices", &typed.devices, "list of 1 and 2; empty: both");
  settings.Add("n", &typed.n, "list of numbers of requests; empty: 1 to 512");
  settings.Add("r", &typed.r, "list of routed shares; empty: .02, .1, .4");
  settings.Add("noise", &typed.noise, "list of relative spreads of step times; empty: 0, .05");
  settings.Add("small_workers", &options.grid.small_workers, 1, 64, "grid: as of simulate");
  settings.Add("large_workers", &options.grid.large_workers, 1, 64, "grid: as of simulate");
  settings.Add("hop_ms", &options.grid.hop_ms, 0.0, 1000.0, "grid: as of simulate");
  settings.Add("distributed", &options.grid.distributed, "grid: as of simulate");
  settings.Add("against", &typed.against, "timed: list of best and names of baselines");
  settings.Add("seconds", &options.seconds, 1, 600, "timed, overhead: measured time of a burst");
  settings.Add("learn_seconds", &options.learn_seconds, 1, 600, "timed, overhead: before that");
  settings.Add("rounds", &options.rounds, 1, 100, "timed: bursts of each policy, interleaved");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  TR_RETURN_IF_ERROR(ReadTyped(typed, &options));
  return RunParts(Parts(), typed.part, options);
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) { return tokenrouter::BenchMain(tokenrouter::Run, argc, argv); }
