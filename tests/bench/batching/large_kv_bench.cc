// The cost of a small KV pool of the large model, on the real cores in simulated time (see
// tests/simulation/closed_loop.h). One JSON row per pool.
//   large_kv_bench [--set=h200] [--devices=2] [--n=32] [--r=0.1] [--pools=1,0.25]
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "libs/config/settings.h"
#include "libs/status/status_macros.h"
#include "tests/bench/measure/bench_parts.h"
#include "tests/simulation/closed_loop.h"

namespace tokenrouter {
namespace {

using simulation::ClosedLoopOptions;
using simulation::ClosedLoopResult;

struct Typed {
  std::vector<double> pools = {1, 0.25};
  std::string prefill = "idle";
  int32_t devices = 2;
  int32_t place_wait_ms = 5000;
};

LargePrefill PrefillOf(const std::string& name) {
  if (name == "lazy") return LargePrefill::kLazy;
  return name == "eager" ? LargePrefill::kEager : LargePrefill::kIdle;
}

absl::Status Print(const ClosedLoopOptions& options, const Typed& typed, double* full) {
  TR_ASSIGN_OR_RETURN(const ClosedLoopResult result, RunClosedLoop(options));
  if (*full == 0) *full = result.committed_per_s;
  const SchedulerCounters& counters = result.counters;
  const boost::json::object row = {
      {"bench", "large_kv"},
      {"set", options.set},
      {"devices", typed.devices},
      {"n", options.requests},
      {"r", options.r},
      {"new_tokens", options.new_tokens},
      {"large_prefill", typed.prefill},
      {"pool", options.pool},
      {"blocks", result.large_blocks},
      {"committed_per_s", result.committed_per_s},
      {"share_of_first", result.committed_per_s / *full},
      {"reopened", counters.reopened[Index(Role::kLarge)][Index(ReopenCause::kEvicted)]},
      {"evicted_pays", counters.evicted[Index(EvictionNeed::kPays)]},
      {"evicted_overdue", counters.evicted[Index(EvictionNeed::kOverdue)]},
      {"evicted_growth", counters.evicted[Index(EvictionNeed::kGrowth)]},
      {"rebuilt_ids", counters.rebuilt_ids},
      {"preemptions", result.preemptions},
      {"longest_wait_s", absl::ToDoubleSeconds(result.longest_wait)},
      {"failed", result.failed}};
  std::cout << boost::json::serialize(row) << std::endl;
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  ClosedLoopOptions options;
  Typed typed;
  Settings settings("large_kv_bench", "Simulates the cost of a small KV pool of the large model");
  settings.Add("set", &options.set, "curve set");
  settings.Add("devices", &typed.devices, 1, 2, "1: both models share one");
  settings.Add("n", &options.requests, 1, 4096, "requests that are always live");
  settings.Add("r", &options.r, 0.001, 0.999, "share of routed tokens");
  settings.Add("new_tokens", &options.new_tokens, 1, 1 << 16, "of a request");
  settings.Add("rounds", &options.rounds, 2, 1000, "times n requests in all");
  settings.Add("pools", &typed.pools, 0.001, 100.0,
               "list of shares of the KV that all requests need at their full lengths");
  settings.AddChoice("large_prefill", &typed.prefill, {"lazy", "idle", "eager"},
                     "as of the scheduler");
  settings.Add("place_wait_ms", &typed.place_wait_ms, 0, 1 << 30, "as of the scheduler");
  settings.Add("rebuild_share", &options.core.rebuild_share, 0.001, 1.0, "as of the scheduler");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  options.shared_device = typed.devices == 1;
  options.core.large_prefill = PrefillOf(typed.prefill);
  options.core.evict_overdue_after = absl::Milliseconds(typed.place_wait_ms);
  double full = 0;
  for (const double pool : typed.pools) {
    options.pool = pool;
    TR_RETURN_IF_ERROR(Print(options, typed, &full));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) { return tokenrouter::BenchMain(tokenrouter::Run, argc, argv); }
