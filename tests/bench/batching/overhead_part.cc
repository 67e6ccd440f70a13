#include "tests/bench/batching/overhead_part.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "tests/bench/batching/busy_cores.h"
#include "tests/bench/batching/timed_system.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

// All routed rows of a small step leave together, find the large side idle and are back before the
// next small step ends. Nothing waits for a device, so the time of a routed token beyond one step
// of each side is overhead.
constexpr double kSmallMs = 20, kLargeMs = 8;
constexpr double kRouted = 0.1;
constexpr int kNewTokens = 2048;
constexpr int kShortPrompt = 64, kLongPrompt = 4096;
constexpr int kLatencyRequests[] = {1, 16};
constexpr int kCostRequests[] = {1, 16, 64, 256};

struct Load {
  int requests = 1;
  int prompt = kShortPrompt;
  bool busy = false;
};

absl::Status RunLoad(const BatchingBenchOptions& options, const Load& load, TimedSystem* system) {
  std::optional<BusyCores> busy;
  if (load.busy) busy.emplace();
  TR_ASSIGN_OR_RETURN(const TimedBurst burst,
                      system->Run({.requests = load.requests,
                                   .prompt_tokens = load.prompt,
                                   .new_tokens = kNewTokens,
                                   .r = kRouted,
                                   .service_mode = api::SERVICE_MODE_ROUTED,
                                   .warm_up = absl::Seconds(options.learn_seconds),
                                   .duration = absl::Seconds(options.seconds)}));
  const double steps_ms = kSmallMs + kLargeMs;
  const json::object row = {{"bench", "batching"},
                            {"part", "overhead"},
                            {"n", load.requests},
                            {"context", load.prompt},
                            {"cores", load.busy ? "busy" : "idle"},
                            {"added_ms_p50", burst.load.routed_gap_p50_ms - steps_ms},
                            {"added_ms_p99", burst.load.routed_gap_p99_ms - steps_ms},
                            {"tokens_per_s", burst.load.committed_per_s},
                            {"scheduler_us_per_token", burst.scheduler_us},
                            {"small_worker_us_per_token", burst.small_worker_us},
                            {"large_worker_us_per_token", burst.large_worker_us},
                            {"cpu_idle", burst.cpu_idle}};
  std::cout << json::serialize(row) << std::endl;
  return absl::OkStatus();
}

}  // namespace

absl::Status RunOverheadPart(const BatchingBenchOptions& options) {
  TR_ASSIGN_OR_RETURN(TimedSystem system,
                      TimedSystem::Start({.small = absl::StrCat("base=", kSmallMs),
                                          .large = absl::StrCat("base=", kLargeMs),
                                          .scheduler_flags = {"--batching=greedy"}}));
  for (const int requests : kLatencyRequests) {
    for (const bool busy : {false, true}) {
      TR_RETURN_IF_ERROR(RunLoad(options, {.requests = requests, .busy = busy}, &system));
    }
  }
  for (const int prompt : {kShortPrompt, kLongPrompt}) {
    for (const int requests : kCostRequests) {
      TR_RETURN_IF_ERROR(RunLoad(options, {.requests = requests, .prompt = prompt}, &system));
    }
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
