// A closed loop of similar requests on the real cores with the step times of a curve set, in
// simulated time. It measures what a policy gains, or what a small KV pool of the large model
// costs. Deterministic; a simulated second takes some tens of milliseconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/scheduler/options/core_options.h"
#include "services/scheduler/options/scheduler_counters.h"

namespace tokenrouter::simulation {

// The lengths of prompts, and when the large model prefills them.
struct PromptKind {
  const char* name;
  int least, most;  // Ids.
  LargePrefill when;
};
// Hardly any prompts, as in the simulator of the batching model.
inline constexpr PromptKind kHardlyAnyPrompts = {"8-16", 8, 16, LargePrefill::kLazy};
// Prompts as people write them, with background prefill.
inline constexpr PromptKind kPromptsOfPeople = {"128-256", 128, 256, LargePrefill::kIdle};

struct ClosedLoopOptions {
  std::string set = "h200";
  bool shared_device = false;
  int requests = 32;  // The number of live requests at any time.
  double r = 0.1;
  int least_prompt = 128, most_prompt = 256;
  int new_tokens = 128;
  // The large pool, as a share of the blocks that all requests need at full length.
  double pool = 1.0;
  // How many times `requests` run in all. The first quarter only warms up.
  int rounds = 8;
  // The delay of a frame in one direction; a handoff latency is two of them.
  absl::Duration least_delay = absl::Microseconds(100), most_delay = absl::Microseconds(200);
  CoreOptions core;

  void SetPrompts(const PromptKind& kind) {
    least_prompt = kind.least;
    most_prompt = kind.most;
    core.large_prefill = kind.when;
  }
};

struct ClosedLoopResult {
  double committed_per_s = 0;
  int64_t large_blocks = 0;
  SchedulerCounters counters;
  uint64_t preemptions = 0;  // Preemptions by the large worker itself.
  absl::Duration longest_wait;
  int failed = 0;
  // The generated ids of each request, by its number.
  std::map<int, std::vector<int32_t>> answers;
};

// INVALID_ARGUMENT for an unknown set.
absl::StatusOr<ClosedLoopResult> RunClosedLoop(const ClosedLoopOptions& options);

}  // namespace tokenrouter::simulation
