#include "tests/bench/batching/large_kv_part.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "tests/bench/batching/timed_system.h"
#include "tests/bench/measure/load_row.h"
#include "tools/simulate/paired_ratio.h"

namespace tokenrouter {
namespace {

constexpr double kPool = 0.25;  // Of what all requests need at their full lengths.
constexpr int kPromptTokens = 192;
constexpr int kNewTokens = 128;
constexpr int kBlock = 16;

absl::StatusOr<TimedSystem> StartWith(const Load& load, double pool) {
  const int64_t longest = (kPromptTokens + kNewTokens + kBlock - 1) / kBlock * kBlock;
  const std::string curve = absl::StrCat(load.set, ",cv=", load.setup.noise_cv);
  return TimedSystem::Start(
      {.small = curve,
       .large = curve,
       .devices = load.devices,
       .large_kv_tokens = std::max(
           longest,
           static_cast<int64_t>(static_cast<double>(load.setup.requests * longest) * pool)),
       .large_prefill = "idle"});
}

absl::Status RunLoad(const BatchingBenchOptions& options, const Load& load) {
  TR_ASSIGN_OR_RETURN(TimedSystem full, StartWith(load, 1));
  TR_ASSIGN_OR_RETURN(TimedSystem small, StartWith(load, kPool));
  const auto burst = [&](int seconds, TimedSystem* system) -> absl::StatusOr<double> {
    TR_ASSIGN_OR_RETURN(const TimedBurst done,
                        system->Run({.requests = load.setup.requests,
                                     .prompt_tokens = kPromptTokens,
                                     .new_tokens = kNewTokens,
                                     .r = load.setup.r,
                                     .service_mode = api::SERVICE_MODE_ROUTED,
                                     .duration = absl::Seconds(seconds)}));
    return done.load.committed_per_s;
  };
  PairedRatio ratio;
  for (TimedSystem* system : {&full, &small}) {
    TR_RETURN_IF_ERROR(burst(options.learn_seconds, system).status());
  }
  for (int round = 0; round < options.rounds; ++round) {
    TR_ASSIGN_OR_RETURN(const double small_rate, burst(options.seconds, &small));
    TR_ASSIGN_OR_RETURN(const double full_rate, burst(options.seconds, &full));
    ratio.Add(small_rate, full_rate);
  }
  boost::json::object row = RowOf(load, "large_kv");
  row["pool"] = kPool;
  row["measured"] = ratio.MeanNumerator();
  row["share_of_full"] = ratio.Mean();
  if (ratio.count() > 1) row["ci95"] = ratio.HalfWidth95();
  for (const char* name : {"evictions_total", "rebuilt_ids_total"}) {
    row[name] =
        Cluster::Metric(small.cluster().scheduler(), absl::StrCat("tokenrouter_scheduler_", name));
  }
  std::cout << boost::json::serialize(row) << std::endl;
  return absl::OkStatus();
}

}  // namespace

absl::Status RunLargeKvPart(const BatchingBenchOptions& options) {
  TR_ASSIGN_OR_RETURN(const std::vector<Load> loads, LoadsOf(options.grid));
  for (const Load& load : loads) TR_RETURN_IF_ERROR(RunLoad(options, load));
  return absl::OkStatus();
}

}  // namespace tokenrouter
